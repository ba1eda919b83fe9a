"""rust_crate: a library crate, its unit tests and its integration tests."""

load("@rules_rust//rust:defs.bzl", "rust_clippy", "rust_library", "rust_test")
load(":arch.bzl", "per_arch", "per_device")
load(":shared_crate.bzl", "shared_crate")
load(":test_flags.bzl", "UNOPTIMISED")
load(":visibility.bzl", "layer_visibility")

def rust_crate(
        name,
        deps = [],
        cuda_deps = [],
        gpu_deps = [],
        emulated_deps = [],
        test_deps = [],
        features = [],
        data = [],
        compile_data = [],
        rustc_env = {},
        test_data = [],
        test_env = {},
        unit_tests = True,
        optimise_tests = False,
        shared = False,
        visibility = None):
    """Declares `name` from the folder's .rs files, its tests, and `<name>_clippy`, which must build.

    The tests are `<name>_test` for those inside the crate, and one per file in tests/.

    Args:
      name: the crate, named like its folder.
      deps: crates it uses.
      cuda_deps: crates it uses only where CUDA is built; they come with the feature "cuda".
      gpu_deps: the same where kernels are machine code, not PTX for the interpreter.
      emulated_deps: crates it uses where they are PTX; they come with the feature "emulated".
      test_deps: crates only its tests use.
      features: features that are always on.
      data: files it reads at run time.
      compile_data: files it includes.
      rustc_env: variables that env!() sees.
      test_data: files its tests read.
      test_env: variables its tests see.
      unit_tests: whether there are tests inside the crate.
      optimise_tests: for tests that compute for longer than optimising them takes.
      shared: whether builds for the PTX interpreter take it from the others. It and all that it uses must not depend
        on what kernels are built for.
      visibility: leave out for the layer's own.
    """
    deps = deps + (per_arch(cuda_deps, []) if cuda_deps else [])
    features = features + (per_arch(["cuda"], []) if cuda_deps else [])
    if gpu_deps:
        deps = deps + per_device(gpu_deps, emulated_deps)
        features = features + per_device(["cuda"], ["emulated"] if emulated_deps else [])
    test_flags = [] if optimise_tests else UNOPTIMISED
    library = name
    visibility = visibility or layer_visibility()
    if shared:
        library = name + "_library"
        shared_crate(
            name = name,
            deps = [library],
            visibility = visibility,
        )
    rust_library(
        name = library,
        srcs = native.glob(["**/*.rs"], exclude = ["tests/**"]),
        compile_data = compile_data,
        crate_features = features,
        crate_name = name,
        data = data,
        rustc_env = rustc_env,
        visibility = visibility,
        deps = deps,
    )
    tests = []
    if unit_tests:
        tests.append(name + "_test")
        rust_test(
            name = name + "_test",
            crate = library,
            data = test_data,
            env = test_env,
            rustc_flags = test_flags,
            deps = test_deps,
        )
    for source in native.glob(["tests/*.rs"], allow_empty = True):
        test = "{}_{}_test".format(name, source[len("tests/"):-len(".rs")])
        tests.append(test)
        rust_test(
            name = test,
            srcs = [source],
            crate_features = features,
            data = test_data,
            env = test_env,
            rustc_flags = test_flags,
            deps = [":" + name] + deps + test_deps,
        )
    rust_clippy(
        name = name + "_clippy",
        testonly = True,
        deps = [library] + tests,
    )
