// C++ that lets an exception out of a function.
#include <stdexcept>

#include "contender.h"

namespace {

void* Bind(const contender_problem*, char*, size_t) {
    static int handle;
    return &handle;
}

int32_t Enqueue(void*, void*) { throw std::runtime_error("out of luck"); }

}  // namespace

const contender_description* contender_library() {
    static const contender_description library = {
        CONTENDER_ABI_VERSION,
        sizeof(contender_description),
        "throws",
        "1",
        nullptr,
        nullptr,
        Bind,
        Enqueue,
        nullptr,
        nullptr,
    };
    return &library;
}
