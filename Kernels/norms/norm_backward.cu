// Shared by both backward passes: their plans, the sums over rows, and the plain kernel.
#include "Kernels/norms/column_sums.cuh"
#include "Kernels/norms/plain.cuh"

namespace norms {

template <bool kCentred>
device::Enqueue prepare_backward_rows(const NormBackward& params, const Config& config);
template <bool kCentred>
device::Enqueue prepare_few_rows(const NormBackward& params, const Config& config);

namespace {

// Partial sums of the column pass: enough blocks to fill the GPU, few enough to add up.
constexpr int kColumnPartials = 256;
// Rows per partial sum in the plain kernels.
constexpr std::int64_t kPlainRows = 1024;

template <class T>
__global__ void norm_backward_plain_kernel(const __grid_constant__ NormBackward params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        const T* x = static_cast<const T*>(params.x) + row * columns;
        const T* gradient = static_cast<const T*>(params.out_gradient) + row * columns;
        T* x_gradient = static_cast<T*>(params.x_gradient) + row * columns;
        const bool centred = params.norm == Norm::kLayer;
        const float rstd = params.rstd[row];
        const float mean = centred ? params.mean[row] : 0.0f;
        float products = 0.0f;
        float sum = 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float normal = (device::to_float(x[column]) - mean) * rstd;
            const float scaled = device::to_float(gradient[column]) *
                                 plain_column<T>(params.weight, params.wide_weight, column);
            products += normal * scaled;
            sum += scaled;
        }
        products = plain_sum(products) / columns;
        sum = centred ? plain_sum(sum) / columns : 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float normal = (device::to_float(x[column]) - mean) * rstd;
            const float scaled = device::to_float(gradient[column]) *
                                 plain_column<T>(params.weight, params.wide_weight, column);
            x_gradient[column] = device::from_float<T>(rstd * (scaled - sum - normal * products));
        }
    }
}

}  // namespace

device::Enqueue prepare(const NormBackward& given) {
    check(given, {{"x", given.x},
                  {"weight", given.weight},
                  {"out_gradient", given.out_gradient},
                  {"x_gradient", given.x_gradient}});
    const bool centred = given.norm == Norm::kLayer;
    const bool in_place = given.x_gradient == given.out_gradient;
    // In place, a row's block would overwrite what a block of columns has yet to read.
    if (are_few_rows(given) && !in_place) {
        const Config config = choose(given, RowUse::kFewRows);
        return centred ? prepare_few_rows<true>(given, config)
                       : prepare_few_rows<false>(given, config);
    }
    const Config config =
        choose(given, centred ? RowUse::kAccumulateBoth : RowUse::kAccumulate, in_place);
    const std::int64_t rows_each = device::divide_up(given.rows, kColumnPartials);
    const std::int64_t partial_rows =
        config.keeps_columns() ? config.partial_rows() : device::divide_up(given.rows, rows_each);
    const auto memory = memory_for_partials(given, partial_rows);
    NormBackward params = given;
    params.partials = static_cast<float*>(memory->start());
    device::Enqueue partials;
    if (!config.keeps_columns()) partials = prepare_column_partials(params, rows_each);
    return [memory, partials,
            rows = centred ? prepare_backward_rows<true>(params, config)
                           : prepare_backward_rows<false>(params, config),
            sums = prepare_column_sums(params, partial_rows)](cudaStream_t stream) {
        // First, because x_gradient may overwrite out_gradient.
        if (partials) partials(stream);
        rows(stream);
        sums(stream);
    };
}

device::Enqueue prepare_plain(const NormBackward& given) {
    check(given);
    const std::int64_t partial_rows = device::divide_up(given.rows, kPlainRows);
    const auto memory = memory_for_partials(given, partial_rows);
    NormBackward params = given;
    params.partials = static_cast<float*>(memory->start());
    return [memory, partials = prepare_column_partials(params, kPlainRows),
            sums = prepare_column_sums(params, partial_rows),
            rows = prepare_plain_rows("norm_backward_plain", params, [](auto element) {
                return norm_backward_plain_kernel<decltype(element)>;
            })](cudaStream_t stream) {
        partials(stream);
        sums(stream);
        rows(stream);
    };
}

}  // namespace norms
