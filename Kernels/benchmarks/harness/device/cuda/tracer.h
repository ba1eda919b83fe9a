// CUPTI's activity tracer, loaded at run time, and NVTX ranges: plain host functions for the
// bridge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace harness_device {

// Loads the library and registers for its buffers. Throws if anything is missing. After a success,
// further calls do nothing.
void tracer_open(const std::string& path);

// Starts and stops recording of kernels, copies and fills. Stop waits for all records and returns
// their number; the accessors are valid until the next start.
void tracer_start();
size_t tracer_stop();
uint32_t tracer_stream(size_t record);
bool tracer_in_graph(size_t record);
uint64_t tracer_start_ns(size_t record);
uint64_t tracer_end_ns(size_t record);
std::unique_ptr<std::string> tracer_name(size_t record);

// Prefix of the mangled names of the harness's own kernels, which are not part of any work.
std::unique_ptr<std::string> own_kernel_prefix();

// Named ranges for profilers; no cost and no effect if none is attached.
void range_push(const std::string& label);
void range_pop();

}  // namespace harness_device
