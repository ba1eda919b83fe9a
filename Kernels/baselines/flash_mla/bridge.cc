#include "Kernels/baselines/flash_mla/bridge.h"

#include "Kernels/baselines/flash_mla/lib.rs.h"

namespace flash_mla::bridge {
namespace {

flash_mla::Step converted(const Step& step) {
    return {step.batch, step.q_len, step.heads, step.pool_pages, step.scale};
}

std::vector<std::int32_t> converted(rust::Slice<const std::int32_t> numbers) {
    return {numbers.begin(), numbers.end()};
}

}  // namespace

bool is_built() { return flash_mla::is_built(); }

bool fits(const Step& step, std::int32_t multiprocessors) {
    const flash_mla::Step wanted = converted(step);
    return flash_mla::fits(wanted, parts(wanted, multiprocessors));
}

std::unique_ptr<Planned> plan(const Step& step, const Tensors& tensors, const PageTable& table) {
    const flash_mla::Tensors addresses = {reinterpret_cast<const void*>(tensors.q),
                                          reinterpret_cast<const void*>(tensors.cache),
                                          reinterpret_cast<void*>(tensors.out)};
    return flash_mla::plan(
        converted(step), addresses,
        {converted(table.lengths), converted(table.indptr), converted(table.indices)});
}

void enqueue(const Planned& planned, std::size_t stream) {
    planned.enqueue(reinterpret_cast<void*>(stream));
}

double plan_microseconds(const Planned& planned) { return planned.microseconds; }

rust::String kernel_name(const Planned& planned) { return planned.kernel; }

}  // namespace flash_mla::bridge
