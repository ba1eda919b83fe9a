#include "Kernels/attention/config.h"

#include <stdexcept>

namespace attention {

Config config_of(Kernel kernel, int head_dim) {
    if (kernel == Kernel::kWgmma) return {kernel, 128, 128};
    // With the large head, scores of 64 keys would leave too few registers to load ahead.
    return {kernel, 128, head_dim == 64 ? 64 : 48};
}

Config choose(const Shape& shape, const Machine& machine) {
    if (shape.head_dim != 64 && shape.head_dim != 128) {
        throw std::invalid_argument("head_dim is " + std::to_string(shape.head_dim) +
                                    "; it must be 64 or 128");
    }
    if (shape.kv_heads < 1 || shape.heads < 1 || shape.heads % shape.kv_heads != 0) {
        throw std::invalid_argument("heads is " + std::to_string(shape.heads) + " and kv_heads " +
                                    std::to_string(shape.kv_heads) +
                                    "; the first must be a multiple of the second");
    }
    if (shape.queries < 1) {
        throw std::invalid_argument("queries is " + std::to_string(shape.queries) +
                                    "; there must be at least one");
    }
    const Config hopper = config_of(Kernel::kWgmma, shape.head_dim);
    // All keys in one tile of small heads: there is nothing to load ahead of, and filling Hopper's
    // pipeline costs more than its tensor cores save. With a second tile it is the faster one (the
    // suite `small` has both).
    const bool pays = shape.head_dim > 64 || shape.keys > hopper.tile_keys;
    return machine.has_wgmma && pays ? hopper : config_of(Kernel::kMma, shape.head_dim);
}

std::string describe(const Config& config) {
    const char* kernel = config.kernel == Kernel::kWgmma ? "wgmma " : "mma ";
    return kernel + std::to_string(config.tile_rows) + "x" + std::to_string(config.tile_keys);
}

}  // namespace attention
