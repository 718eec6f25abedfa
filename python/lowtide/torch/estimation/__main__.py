"""`python -m lowtide.torch.estimation FILE`: the estimate of what a file defines. `lowtide estimate` runs this."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback
from typing import Any

OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
"""The folder of this package."""

USAGE = 2
"""The exit code of bad usage, bad input and the model's own failures."""


def main(arguments: list[str] | None = None) -> int:
    """Estimates, shows and writes; returns the exit code: 0 fits, 1 does not, 2 trouble."""
    parser = argparse.ArgumentParser(prog="lowtide estimate")
    parser.add_argument("file")
    parser.add_argument("--memory")
    parser.add_argument("--vary", choices=["batch", "sequence"])
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ascii", action="store_true")
    parser.add_argument("-o", "--output")
    parser.add_argument("--trace")
    options = parser.parse_args(arguments)
    try:
        found = ask(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return USAGE
    except SystemExit as error:
        print(f"error: {place(error, options.file)}: the file ends the program: SystemExit: {error}\n"
              "hint: keep what runs the training below `if __name__ == \"__main__\":`", file=sys.stderr)
        return USAGE
    except Exception as error:  # whatever the file or the model raises is the answer
        text = str(error)
        is_own = "\nhint:" in text
        said = text if is_own else f"{type(error).__name__}: {text}" if text else type(error).__name__
        print(f"error: {place(error, options.file)}: {said}", file=sys.stderr)
        return USAGE
    text = found.json() if options.json else str(found)
    print(text.replace("·", "|").replace("×", "x") if options.ascii else text)
    try:
        if options.trace:
            found.save_trace(options.trace)
        if options.output:
            with open(options.output, "w", encoding="utf-8") as file:
                file.write(found.json() + "\n")
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}\nhint: give a path that can be written to", file=sys.stderr)
        return USAGE
    return 0 if found.fits is None or any(found.fits.values()) else 1


def place(error: BaseException, file: str) -> str:
    """Where in the file, or in what lies beside it, an error comes from, such as `train.py:12`."""
    folder = os.path.dirname(os.path.abspath(file)) + os.sep
    cause: BaseException | None = error
    found = file
    while cause is not None:
        for frame in traceback.extract_tb(cause.__traceback__):
            path = os.path.abspath(frame.filename)
            if path.startswith(folder) and "site-packages" not in path and not path.startswith(OWN):
                shown = file if path == os.path.abspath(file) else os.path.relpath(path)
                found = f"{shown}:{frame.lineno}"
        cause = cause.__cause__
    return found


def ask(options: argparse.Namespace) -> Any:
    """The estimate of what the file defines, which runs as a program of its own would."""
    if not os.path.isfile(options.file):
        raise ValueError("there is no such file\nhint: give a Python file that defines model() and example()")
    arguments, paths = sys.argv, list(sys.path)
    sys.argv = [options.file]
    sys.path.insert(0, os.path.dirname(os.path.abspath(options.file)))
    try:
        return answer(options)
    finally:
        sys.argv, sys.path[:] = arguments, paths


def answer(options: argparse.Namespace) -> Any:
    """The estimate of what the file defines."""
    defined = runpy.run_path(options.file, run_name="lowtide_estimate")
    for name in ("model", "example"):
        if not callable(defined.get(name)):
            raise ValueError(
                f"the file has no function {name}()\nhint: the file defines model(), example() or example(batch), and "
                "may define optimizer(parameters), loss(output) and autocast()"
            )
    try:
        from lowtide.torch.estimation import estimate
    except ModuleNotFoundError as error:
        if error.name == "torch":
            raise ValueError("this Python has no torch\nhint: name one that has it: --python PYTHON") from error
        raise
    autocast = defined["autocast"]() if callable(defined.get("autocast")) else None
    return estimate(
        defined["model"], defined["example"], defined.get("optimizer"), loss=defined.get("loss"), memory=options.memory,
        vary=options.vary, steps=options.steps, autocast=autocast,
    )


if __name__ == "__main__":
    sys.exit(main())
