// CUPTI through dlopen: the headers provide the types, nothing is linked, and a missing library is
// an error with a reason.

#include "Kernels/benchmarks/harness/device/cuda/tracer.h"

#include <cupti.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace harness_device {
namespace {

// Room for some thousand records; CUPTI requests more buffers as needed.
constexpr size_t kBufferBytes = 1 << 20;
constexpr size_t kBufferAlignment = 8;

// CUPTI counts versions as major * 10000 + minor * 100 + patch since 13.0.
constexpr uint32_t kMajor = CUPTI_API_VERSION / 10000;

struct Record {
    std::string name;
    uint32_t stream;
    uint32_t graph;
    uint64_t start_ns;
    uint64_t end_ns;
};

struct Api {
    decltype(&cuptiGetVersion) get_version = nullptr;
    decltype(&cuptiGetResultString) get_result_string = nullptr;
    decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
    decltype(&cuptiActivityEnable) enable = nullptr;
    decltype(&cuptiActivityDisable) disable = nullptr;
    decltype(&cuptiActivityFlushAll) flush_all = nullptr;
    decltype(&cuptiActivityGetNextRecord) get_next_record = nullptr;
    decltype(&cuptiActivityGetNumDroppedRecords) get_dropped = nullptr;
};

Api api;
bool opened = false;
std::mutex records_mutex;  // CUPTI delivers buffers on its own thread
std::vector<Record> records;
size_t dropped_records = 0;

// Nodes of a graph are recorded one by one, because graphs as a whole are not among the kinds.
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                         CUPTI_ACTIVITY_KIND_MEMSET};

void check(CUptiResult status, const char* call) {
    if (status == CUPTI_SUCCESS) return;
    const char* text = nullptr;
    api.get_result_string(status, &text);
    throw std::runtime_error(std::string("CUPTI: ") + call + ": " +
                             (text ? text : "unknown error"));
}

template <class Function>
void load(void* library, const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, symbol));
    if (function == nullptr) {
        throw std::runtime_error(std::string("CUPTI: the library has no ") + symbol);
    }
}

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* max_records) {
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
    *size = *buffer ? kBufferBytes : 0;
    *max_records = 0;  // as many as fit
}

template <class Activity>
void keep_as(const char* name, const CUpti_Activity* activity) {
    auto* record = reinterpret_cast<const Activity*>(activity);
    records.push_back({name, record->streamId, record->graphId, record->start, record->end});
}

void keep(const CUpti_Activity* activity) {
    switch (activity->kind) {
        case CUPTI_ACTIVITY_KIND_KERNEL:
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
            auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(activity);
            keep_as<CUpti_ActivityKernel10>(kernel->name ? kernel->name : "?", activity);
            break;
        }
        case CUPTI_ACTIVITY_KIND_MEMCPY:
            keep_as<CUpti_ActivityMemcpy6>("memcpy", activity);
            break;
        case CUPTI_ACTIVITY_KIND_MEMCPY2:
            keep_as<CUpti_ActivityMemcpyPtoP4>("memcpy", activity);
            break;
        case CUPTI_ACTIVITY_KIND_MEMSET:
            keep_as<CUpti_ActivityMemset4>("memset", activity);
            break;
        default:
            break;
    }
}

void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t* buffer, size_t,
                          size_t valid_bytes) {
    std::lock_guard<std::mutex> lock(records_mutex);
    CUpti_Activity* activity = nullptr;
    while (api.get_next_record(buffer, valid_bytes, &activity) == CUPTI_SUCCESS) keep(activity);
    size_t dropped = 0;
    if (api.get_dropped(context, stream, &dropped) == CUPTI_SUCCESS) dropped_records += dropped;
    std::free(buffer);
}

}  // namespace

void tracer_open(const std::string& path) {
    if (opened) return;
    // Stays loaded for the life of the process: CUPTI cannot be unloaded safely.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(std::string("CUPTI: ") + dlerror());
    load(library, "cuptiGetVersion", api.get_version);
    load(library, "cuptiGetResultString", api.get_result_string);
    load(library, "cuptiActivityRegisterCallbacks", api.register_callbacks);
    load(library, "cuptiActivityEnable", api.enable);
    load(library, "cuptiActivityDisable", api.disable);
    load(library, "cuptiActivityFlushAll", api.flush_all);
    load(library, "cuptiActivityGetNextRecord", api.get_next_record);
    load(library, "cuptiActivityGetNumDroppedRecords", api.get_dropped);
    uint32_t version = 0;
    check(api.get_version(&version), "cuptiGetVersion");
    // Within a major version records grow at the end; an older library has shorter ones.
    if (version / 10000 != kMajor || version < CUPTI_API_VERSION) {
        throw std::runtime_error("CUPTI: version " + std::to_string(version) + " is not a " +
                                 std::to_string(kMajor) + ".x from " +
                                 std::to_string(CUPTI_API_VERSION) + " on");
    }
    check(api.register_callbacks(give_buffer, take_buffer), "cuptiActivityRegisterCallbacks");
    opened = true;
}

void tracer_start() {
    if (!opened) throw std::runtime_error("CUPTI: not loaded");
    check(api.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
    {
        std::lock_guard<std::mutex> lock(records_mutex);
        records.clear();
        dropped_records = 0;
    }
    for (CUpti_ActivityKind kind : kKinds) check(api.enable(kind), "cuptiActivityEnable");
}

size_t tracer_stop() {
    if (!opened) throw std::runtime_error("CUPTI: not loaded");
    CUptiResult flushed = api.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    for (CUpti_ActivityKind kind : kKinds) check(api.disable(kind), "cuptiActivityDisable");
    check(flushed, "cuptiActivityFlushAll");
    std::lock_guard<std::mutex> lock(records_mutex);
    if (dropped_records != 0) {
        throw std::runtime_error("CUPTI: " + std::to_string(dropped_records) +
                                 " records were dropped");
    }
    std::sort(records.begin(), records.end(),
              [](const Record& a, const Record& b) { return a.start_ns < b.start_ns; });
    return records.size();
}

uint32_t tracer_stream(size_t record) { return records.at(record).stream; }
bool tracer_in_graph(size_t record) { return records.at(record).graph != 0; }
uint64_t tracer_start_ns(size_t record) { return records.at(record).start_ns; }
uint64_t tracer_end_ns(size_t record) { return records.at(record).end_ns; }
std::unique_ptr<std::string> tracer_name(size_t record) {
    return std::make_unique<std::string>(records.at(record).name);
}

std::unique_ptr<std::string> own_kernel_prefix() {
    return std::make_unique<std::string>("_ZN14harness_device");
}

void range_push(const std::string& label) { nvtxRangePushA(label.c_str()); }
void range_pop() { nvtxRangePop(); }

}  // namespace harness_device
