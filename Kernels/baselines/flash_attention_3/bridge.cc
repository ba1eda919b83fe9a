#include "Kernels/baselines/flash_attention_3/bridge.h"

#include "Kernels/baselines/flash_attention_3/lib.rs.h"
#include "Kernels/device/require.h"

namespace flash_attention_3::bridge {
namespace {

flash_attention_3::Kernel chosen(const Batch& batch) {
    return choose({batch.same_lengths, batch.causal, batch.longest_q, batch.heads, batch.kv_heads,
                   batch.head_dim, batch.value_dim});
}

}  // namespace

Planned::Planned(const Batch& batch, const Tensors& tensors)
    : lse_(sizeof(float) * batch.total_q * batch.heads),
      schedule_(sizeof(int) * schedule_words(batch.batch)),
      launch_(find(chosen(batch))) {
    if (launch_ == nullptr) {
        device::refuse(name_of(chosen(batch)) + " is not in this build");
    }
    attention_.q = reinterpret_cast<const void*>(tensors.q);
    attention_.k = reinterpret_cast<const void*>(tensors.k);
    attention_.v = reinterpret_cast<const void*>(tensors.v);
    attention_.out = reinterpret_cast<void*>(tensors.out);
    attention_.lse = static_cast<float*>(lse_.start());
    attention_.schedule = static_cast<int*>(schedule_.start());
    attention_.starts_q = reinterpret_cast<const int*>(tensors.starts_q);
    attention_.starts_kv = reinterpret_cast<const int*>(tensors.starts_kv);
    attention_.batch = batch.batch;
    attention_.total_q = batch.total_q;
    attention_.total_kv = batch.total_kv;
    attention_.longest_q = batch.longest_q;
    attention_.longest_kv = batch.longest_kv;
    attention_.heads = batch.heads;
    attention_.kv_heads = batch.kv_heads;
    attention_.scale = batch.scale;
    attention_.multiprocessors = device::multiprocessors();
}

void Planned::enqueue(std::size_t stream) const {
    launch_(attention_, reinterpret_cast<cudaStream_t>(stream));
}

rust::String kernel(const Batch& batch) { return name_of(chosen(batch)); }

bool is_built(const Batch& batch) { return find(chosen(batch)) != nullptr; }

std::unique_ptr<Planned> plan(const Batch& batch, const Tensors& tensors) {
    return std::make_unique<Planned>(batch, tensors);
}

}  // namespace flash_attention_3::bridge
