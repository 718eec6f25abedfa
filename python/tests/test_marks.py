"""Marks: a program ends an action, and `lowtide watch` tells the peak of each."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import child


def watched(tmp_path: Path, program: str, *options: str) -> dict[str, object]:
    """What `lowtide watch` says of the program, which must end well."""
    script = tmp_path / "program.py"
    script.write_text(program)
    output = tmp_path / "watch.json"
    words = ["watch", "-o", str(output), *options, "--", sys.executable, str(script)]
    done = child.lowtide(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return json.loads(output.read_text())


def test_without_a_watcher_a_mark_does_nothing() -> None:
    assert child.run("import lowtide; print(lowtide.mark('compile'))").strip() == "False"
    assert child.run("import lowtide; print(lowtide.mark())", LOWTIDE_MARKS="/not/there").strip() == "False"


def test_a_mark_is_a_line_in_the_fifo(tmp_path: Path) -> None:
    fifo = tmp_path / "marks"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    program = "import lowtide; print(lowtide.mark('two\\nlines'), lowtide.mark())"
    assert child.run(program, LOWTIDE_MARKS=str(fifo)).split() == ["True", "True"]
    assert os.read(reader, 100) == b"two lines\nmark\n"
    os.close(reader)
    # Nobody reads it any more: the program does not wait for somebody.
    assert child.run(program, LOWTIDE_MARKS=str(fifo)).split() == ["False", "False"]


def test_each_action_has_a_peak_of_its_own(tmp_path: Path) -> None:
    program = """
import lowtide, time
lowtide.mark("start")
for _ in range(4):
    for name, size in (("large", 100_000_000), ("small", 50_000_000)):
        block = bytearray(size)
        del block
        lowtide.mark(name)
        time.sleep(0.03)
"""
    actions = {action["name"]: action for action in watched(tmp_path, program)["actions"]}
    assert {name: action["count"] for name, action in actions.items()} == {"start": 1, "large": 4, "small": 4}
    difference = actions["large"]["peak_median"] - actions["small"]["peak_median"]
    assert abs(difference - 50_000_000) < 15_000_000
    # What an action let go of is in its peak and not in what it left.
    assert actions["large"]["peak_median"] - actions["large"]["resident_after_median"] > 80_000_000


def test_a_mark_may_be_the_last_that_a_program_does(tmp_path: Path) -> None:
    program = "import lowtide, os\nfor _ in range(20): lowtide.mark('end')\nos._exit(0)\n"
    for _ in range(4):
        actions = watched(tmp_path, program)["actions"]
        assert [(action["name"], action["count"]) for action in actions] == [("end", 20)]


def test_steps_that_do_not_come_are_said(tmp_path: Path) -> None:
    program = "import time\ntime.sleep(0.1)\n"
    notes = watched(tmp_path, program, "--mark", "step")["notes"]
    assert any(note.startswith("no step was marked") for note in notes)
    assert watched(tmp_path, program)["notes"] == []


def test_steps_are_marked_where_that_was_asked_for(tmp_path: Path) -> None:
    program = "import lowtide, time\nfor _ in range(5): lowtide.step(); time.sleep(0.02)\n"
    assert watched(tmp_path, program)["actions"] == []
    actions = watched(tmp_path, program, "--mark", "step")["actions"]
    assert [(action["name"], action["count"]) for action in actions] == [("step", 5)]


def test_the_steps_of_an_optimizer_are_marked(tmp_path: Path) -> None:
    program = """
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
"""
    actions = watched(tmp_path, program, "--mark", "step")["actions"]
    assert [(action["name"], action["count"]) for action in actions] == [("step", 6)]
