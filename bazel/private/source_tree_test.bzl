"""source_tree_test: a check of the whole source tree, as a test."""

def source_tree_test(name, program, args = [], data = [], env = {}, tags = []):
    """Declares a test that runs a program on the repository itself and passes if it exits 0.

    The tree is not a declared input (no target can list every file), so the test always runs, outside
    the sandbox.

    Args:
      name: the test.
      program: the program; it finds the tree with //tools/workspace.
      args: its arguments.
      data: files it reads besides the tree.
      env: variables it sees.
      tags: Bazel's, besides its own.
    """

    # Bazel 7 has sh_test built in; a module for it would be one more pin.
    # buildifier: disable=native-sh-test
    native.sh_test(
        name = name,
        size = "medium",
        srcs = ["//bazel/private:source_tree_test.sh"],
        args = ["$(rootpath {})".format(program)] + args,
        data = data + [program, "//:MODULE.bazel"],
        env = env,
        tags = ["external", "local", "no-cache"] + tags,
    )
