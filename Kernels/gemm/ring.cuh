// Position in a ring of stages: the stage, and the parity of its current phase.
#pragma once

namespace gemm {

template <int kStages>
struct Ring {
    int stage = 0;
    unsigned parity = 0;

    __device__ void advance() {
        if (++stage == kStages) {
            stage = 0;
            parity ^= 1;
        }
    }

    __device__ void skip(int steps) {
        stage += steps;
        parity ^= stage / kStages % 2;
        stage %= kStages;
    }
};

}  // namespace gemm
