"""instances: a template of the library, with one translation unit per type and head size."""

load("//bazel:defs.bzl", "cuda_kernels")

def instances(name, srcs, hdrs, one, deps, shelf = None):
    """Declares a library of all instantiations.

    Args:
      name: the library.
      srcs: a source for each.
      hdrs: what they include.
      one: the source that every build compiles; //bazel/cuda:instances may leave out the others.
      deps: of every source.
      shelf: as for cuda_kernels.
    """
    cuda_kernels(
        name = name + "_one",
        srcs = [one] + hdrs,
        shelf = shelf,
        deps = deps,
    )
    cuda_kernels(
        name = name + "_others",
        srcs = [source for source in srcs if source != one] + hdrs,
        one_of_many = True,
        shelf = shelf,
        deps = deps,
    )
    cuda_kernels(
        name = name,
        shelf = shelf,
        deps = [
            ":" + name + "_one",
            ":" + name + "_others",
        ],
    )
