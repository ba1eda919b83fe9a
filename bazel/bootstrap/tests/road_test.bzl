"""road_test: cases against a machine made of stand-ins."""

def road_test(name):
    """Declares a test of the real bazelw and its bootstrap, run by the machine's python3.

    Args:
      name: the test, and its file without `.py`.
    """

    # Bazel 7 has sh_test built in; a module for it, or for Python, would be one more pin.
    # buildifier: disable=native-sh-test
    native.sh_test(
        name = name,
        size = "medium",
        srcs = ["run.sh"],
        args = ["$(rootpath {}.py)".format(name)],
        data = [
            name + ".py",
            "machine.py",
            "//:.bazelversion",
            "//:bazelw",
            "//bazel/bootstrap",
        ],
        # The cases talk to servers of their own on 127.0.0.1.
        tags = ["requires-network"],
    )
