"""The command line: `python -m lowtide` is `lowtide`."""

import os
import sys

from lowtide._lowtide import main as run


def main() -> int:
    """Runs the command line with the arguments of this process."""
    # `run` and `record` look here for the package.
    os.environ.setdefault("LOWTIDE_PYTHON", sys.executable)
    return run(["lowtide", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
