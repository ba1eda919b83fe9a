"""lock_library: the files of a locked library that programs load, together in one folder."""

load("@build_facts//:facts.bzl", "LOCKED_LIBRARIES")
load(":visibility.bzl", "layer_visibility")

# Programs look for it in their runfiles: Kernels/libraries/find.rs.
_FOLDER = "lib"

def _impl(ctx):
    links = []
    for file in ctx.files.files:
        if not [member for member in ctx.attr.members if file.path.endswith("/" + member)]:
            continue
        link = ctx.actions.declare_file("{}/{}".format(_FOLDER, file.basename))
        ctx.actions.symlink(output = link, target_file = file)
        links.append(link)
    if ctx.files.files and len(links) != len(ctx.attr.members):
        fail("{}: found {} of the files that the lock records: {}".format(
            ctx.label,
            len(links),
            ", ".join(ctx.attr.members),
        ))
    return [DefaultInfo(files = depset(links), runfiles = ctx.runfiles(links))]

_lock_library = rule(
    implementation = _impl,
    attrs = {
        "files": attr.label(allow_files = True),
        "members": attr.string_list(mandatory = True),
    },
)

def lock_library(name, artifact, files, on_cpu = False):
    """Declares the files as data for the crate that loads them; none if nothing will run them.

    Args:
      name: the target.
      artifact: the entry of the lock, whose `files` say which.
      files: everything that the artifact holds.
      on_cpu: whether the library runs on the CPU, not on a GPU.
    """
    if artifact not in LOCKED_LIBRARIES:
        fail("{}: the lock records no files of it; pin it with --file".format(artifact))
    _lock_library(
        name = name,
        files = select({
            "//bazel/cuda:lock_libraries" + ("_of_cpu" if on_cpu else ""): files,
            "//conditions:default": None,
        }),
        members = LOCKED_LIBRARIES[artifact],
        visibility = layer_visibility(),
    )
