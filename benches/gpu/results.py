"""The file of results: a line of JSON for every run of a workload on an allocator, written when that run is over. What
is cut off goes on where it stopped, and a table can be made at any time."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

Result = dict[str, Any]
# Workload, allocator, and which round it was.
Key = tuple[str, str, int]


class Mixed(Exception):
    """Runs in one file that cannot be compared."""


class Results:
    """All runs so far; those of a file, where one is given."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._runs: dict[Key, Result] = {}
        if path and path.exists():
            for number, line in enumerate(path.read_text().splitlines(), 1):
                self._take(line, number)

    def _take(self, line: str, number: int) -> None:
        try:
            result = json.loads(line)
            self._runs[key(result)] = result
        except (ValueError, TypeError, KeyError):
            print(f"{self.path}:{number}: not a whole result, which is left out", file=sys.stderr)

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Result]:
        return iter(self._runs.values())

    def __contains__(self, wanted: Key) -> bool:
        return wanted in self._runs

    def forget_failures(self) -> None:
        """Takes the runs that failed as not made."""
        self._runs = {key: result for key, result in self._runs.items() if "error" not in result}

    def check_settings(self, **settings: int) -> None:
        """Refuses settings other than those of the runs that are there."""
        for result in self:
            for name, value in settings.items():
                if result.get(name, value) != value:
                    raise Mixed(f"{self.path} has runs with `{name}` {result[name]}, not {value}")

    def add(self, result: Result) -> None:
        """Keeps a run, in the file as well. One that was there before is replaced."""
        self._runs[key(result)] = result
        if self.path:
            with self.path.open("a+b") as file:
                file.write(_rest_of_line(file) + json.dumps(result).encode() + b"\n")


def _rest_of_line(file: BinaryIO) -> bytes:
    """What ends the last line of a file, where a process was killed while it wrote that."""
    if not file.seek(0, os.SEEK_END):
        return b""
    file.seek(-1, os.SEEK_END)
    return b"" if file.read(1) == b"\n" else b"\n"


def key(result: Result) -> Key:
    return result["workload"], result["allocator"], result["round"]
