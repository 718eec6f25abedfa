"""`python -m lowtide.torch.estimation FILE`: the estimate of what a file defines. `lowtide estimate` runs this."""

from __future__ import annotations

import argparse
import runpy
import sys
from typing import Any

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
    except Exception as error:  # whatever the file or the model raises is the answer
        text = str(error) or type(error).__name__
        print(f"error: {options.file}: {text}", file=sys.stderr)
        if "hint:" not in text:
            print("hint: the file defines model(), example() or example(batch), and may define optimizer(parameters), "
                  "loss(output) and autocast()", file=sys.stderr)
        return USAGE
    if options.trace:
        found.save_trace(options.trace)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(found.json() + "\n")
    text = found.json() if options.json else str(found)
    print(text.replace("·", "|").replace("×", "x") if options.ascii else text)
    return 0 if found.fits is None or any(found.fits.values()) else 1


def ask(options: argparse.Namespace) -> Any:
    """The estimate of what the file defines."""
    defined = runpy.run_path(options.file, run_name="lowtide_estimate")
    for name in ("model", "example"):
        if not callable(defined.get(name)):
            raise ValueError(f"the file has no function {name}()\nhint: define model() and example()")
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
