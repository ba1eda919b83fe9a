// TRT-LLM-gen's attention, through FlashInfer's runner: kernels that come as machine code for
// sm_100a, one file each, chosen by shape when they are launched.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "Kernels/baselines/flashinfer/decode.h"
#include "Kernels/baselines/flashinfer/driver.h"
#include "Kernels/baselines/flashinfer/page_rows.h"
#include "Kernels/baselines/flashinfer/prefill.h"

namespace fi {

// A step over a paged cache. What `call` says of pages is not read.
struct TrtllmGenDecode {
    PagedDecode call;
    PageTable pages;
};

// What a call would launch, and the files that it would load on the way to that choice.
struct TrtllmGenChoice {
    std::string kernel;
    std::vector<Cubin> cubins;
};

// Whether this build has code for sm_100a; the functions below throw where it has not.
bool has_trtllm_gen();

// Of the archive that the machine code and its list come from; empty where they are not here.
std::string trtllm_gen_archive_sha256();

// The library's own choice for a device with so many multiprocessors, found without a device.
// `clusters_fit` is what such a device would say about the residence of clusters. Throws, with the
// library's reason, where it has no kernel.
TrtllmGenChoice choose_trtllm_gen(const RaggedPrefill& call, int multiprocessors,
                                  bool clusters_fit);
TrtllmGenChoice choose_trtllm_gen(const TrtllmGenDecode& step, int multiprocessors,
                                  bool clusters_fit);
TrtllmGenChoice choose_trtllm_gen(const JoinedMla& step, int multiprocessors, bool clusters_fit);

// Reads a file of machine code; must throw where its bytes do not have its sha256.
using ReadCubin = std::string (*)(const Cubin& cubin);

// bf16 only. What a plan needs is read, checked and loaded before this returns.
std::unique_ptr<Planned> plan_trtllm_gen(const RaggedPrefill& call, ReadCubin read);
std::unique_ptr<Planned> plan_trtllm_gen(const TrtllmGenDecode& step, ReadCubin read);
std::unique_ptr<Planned> plan_trtllm_gen(const JoinedMla& step, ReadCubin read);

}  // namespace fi
