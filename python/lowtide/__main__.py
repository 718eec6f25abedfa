"""The command line: `python -m lowtide` is `lowtide`."""

import os
import sys

from lowtide._lowtide import main as run
from lowtide._lowtide import variable


def main() -> int:
    """Runs the command line with the arguments of this process."""
    # `run` and `record` look here for the package, and `run` for the library that it loads before a program.
    os.environ.setdefault(variable("python"), sys.executable)
    library = os.path.join(os.path.dirname(os.path.abspath(__file__)), "liblowtide_malloc.so")
    if os.path.isfile(library):
        os.environ.setdefault(variable("library"), library)
    return run(["lowtide", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
