"""The public rules, under the names that the full rules_cuda gives them."""

load("//cuda/private:cuda_library.bzl", _cuda_library = "cuda_library")
load(
    "//cuda/private:toolchain.bzl",
    _cuda_toolchain = "cuda_toolchain",
    _cuda_toolchain_config_nvcc = "cuda_toolchain_config_nvcc",
    _cuda_toolkit_info = "cuda_toolkit_info",
)

cuda_library = _cuda_library
cuda_toolchain = _cuda_toolchain
cuda_toolchain_config_nvcc = _cuda_toolchain_config_nvcc
cuda_toolkit_info = _cuda_toolkit_info
