"""Everything that BUILD files load."""

load(
    "@build_facts//:facts.bzl",
    _BUILD_FACTS = "BUILD_FACTS",
    _LOCKED_LIBRARIES_FACT = "LOCKED_LIBRARIES_FACT",
    _RECIPES_FACT = "RECIPES_FACT",
)
load(
    "//bazel/private:arch.bzl",
    _BUILT_SM_DEFINES = "BUILT_SM_DEFINES",
    _REWRITTEN_FEATURES = "REWRITTEN_FEATURES",
    _on_ptx = "on_ptx",
    _on_shelf = "on_shelf",
    _on_sm = "on_sm",
    _per_arch = "per_arch",
)
load("//bazel/private:comparison.bzl", _comparison = "comparison")
load("//bazel/private:comparison_bench.bzl", _comparison_bench = "comparison_bench")
load("//bazel/private:comparison_suite.bzl", _comparison_suite = "comparison_suite")
load("//bazel/private:contender_kernel.bzl", _contender_kernel = "contender_kernel")
load("//bazel/private:contender_library.bzl", _contender_library = "contender_library")
load("//bazel/private:contenders.bzl", _contenders = "contenders", _own_contenders = "own_contenders")
load("//bazel/private:cuda_host_test.bzl", _cuda_host_test = "cuda_host_test")
load("//bazel/private:cuda_kernels.bzl", _cuda_kernels = "cuda_kernels")
load("//bazel/private:cxx_bridge.bzl", _cxx_bridge = "cxx_bridge")
load("//bazel/private:emulated_bench.bzl", _emulated_bench = "emulated_bench")
load("//bazel/private:emulated_crate.bzl", _emulated_crate = "emulated_crate")
load("//bazel/private:emulated_test.bzl", _emulated_test = "emulated_test")
load("//bazel/private:gpu_test.bzl", _gpu_test = "gpu_test")
load("//bazel/private:host_library.bzl", _host_library = "host_library", _host_test = "host_test")
load("//bazel/private:kernel_family.bzl", _kernel_family = "kernel_family")
load("//bazel/private:lock_library.bzl", _lock_library = "lock_library")
load("//bazel/private:release_program.bzl", _release_program = "release_program")
load("//bazel/private:rust_crate.bzl", _rust_crate = "rust_crate")
load("//bazel/private:rust_program.bzl", _rust_program = "rust_program")
load("//bazel/private:source_tree_test.bzl", _source_tree_test = "source_tree_test")

BUILD_FACTS = _BUILD_FACTS
BUILT_SM_DEFINES = _BUILT_SM_DEFINES
LOCKED_LIBRARIES_FACT = _LOCKED_LIBRARIES_FACT
RECIPES_FACT = _RECIPES_FACT
REWRITTEN_FEATURES = _REWRITTEN_FEATURES
comparison = _comparison
comparison_bench = _comparison_bench
comparison_suite = _comparison_suite
contender_kernel = _contender_kernel
contender_library = _contender_library
contenders = _contenders
cuda_host_test = _cuda_host_test
cuda_kernels = _cuda_kernels
cxx_bridge = _cxx_bridge
emulated_bench = _emulated_bench
emulated_crate = _emulated_crate
emulated_test = _emulated_test
gpu_test = _gpu_test
host_library = _host_library
host_test = _host_test
kernel_family = _kernel_family
lock_library = _lock_library
on_ptx = _on_ptx
on_shelf = _on_shelf
on_sm = _on_sm
own_contenders = _own_contenders
per_arch = _per_arch
release_program = _release_program
rust_crate = _rust_crate
rust_program = _rust_program
source_tree_test = _source_tree_test
