// TRT-LLM-gen's attention, through FlashInfer's runner: kernels shipped as machine code for
// sm_100a, one file each, chosen by shape at launch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "Kernels/baselines/flashinfer/decode.h"
#include "Kernels/baselines/flashinfer/driver.h"
#include "Kernels/baselines/flashinfer/page_rows.h"
#include "Kernels/baselines/flashinfer/prefill.h"

namespace fi {

// A step over a paged cache. The page fields of `call` are not read.
struct TrtllmGenDecode {
    PagedDecode call;
    PageTable pages;
};

// What a call would launch, and the files it would load to make that choice.
struct TrtllmGenChoice {
    std::string kernel;
    std::vector<Cubin> cubins;
};

// Whether this build has code for sm_100a; otherwise the functions below throw.
bool has_trtllm_gen();

// Sha256 of the archive of cubins and their list; empty if they are not in this build.
std::string trtllm_gen_archive_sha256();

// The library's own choice for a device with this many multiprocessors, found without a device.
// `clusters_fit` is whether all clusters are resident on such a device. Throws, with the library's
// reason, if it has no kernel.
TrtllmGenChoice choose_trtllm_gen(const RaggedPrefill& call, int multiprocessors,
                                  bool clusters_fit);
TrtllmGenChoice choose_trtllm_gen(const TrtllmGenDecode& step, int multiprocessors,
                                  bool clusters_fit);
TrtllmGenChoice choose_trtllm_gen(const JoinedMla& step, int multiprocessors, bool clusters_fit);

// Reads a cubin; must throw if its bytes do not have its sha256.
using ReadCubin = std::string (*)(const Cubin& cubin);

// bf16, and decode over FP8 too. Everything a plan needs is read, checked and loaded before this
// returns.
std::unique_ptr<Planned> plan_trtllm_gen(const RaggedPrefill& call, ReadCubin read);
std::unique_ptr<Planned> plan_trtllm_gen(const TrtllmGenDecode& step, ReadCubin read);
std::unique_ptr<Planned> plan_trtllm_gen(const JoinedMla& step, ReadCubin read);

}  // namespace fi
