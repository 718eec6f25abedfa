"""`lowtide run` and `lowtide record`: how a program is found, told and ended, without a change to it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import child
import pytest

pytest.importorskip("torch")

PYTHON = sys.executable


def test_a_program_is_served_without_a_change(tmp_path: Path) -> None:
    program = (
        "import torch; kept = torch.ones(1 << 20); from lowtide import _lowtide; print(_lowtide.cpu_stats()['live'])"
    )
    done = child.lowtide("run", "--cpu", "--", PYTHON, "-c", program, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "4194304\n", "")


def test_who_only_asks_for_pytorch_does_not_keep_it_from_being_served(tmp_path: Path) -> None:
    program = (
        "import importlib.util; assert importlib.util.find_spec('torch'); import torch; kept = torch.ones(1 << 20); "
        "from lowtide import _lowtide; print(_lowtide.cpu_stats()['live'])"
    )
    done = child.lowtide("run", "--cpu", "--", PYTHON, "-c", program, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "4194304\n", "")


def test_the_end_of_the_program_is_the_end_of_the_command(tmp_path: Path) -> None:
    for program, code in [
        ("raise SystemExit(7)", 7),
        ("import os; os.kill(os.getpid(), 9)", 137),
        ("raise ValueError('mine')", 1),
    ]:
        done = child.lowtide("run", "--cpu", PYTHON, "-c", program, cwd=tmp_path)
        assert done.returncode == code, done.stderr
    done = child.lowtide("record", PYTHON, "-c", "raise SystemExit(7)", cwd=tmp_path)
    assert done.returncode == 7


def test_a_program_without_pytorch_is_left_alone(tmp_path: Path) -> None:
    program = "import sys; print('lowtide' in sys.modules, 'torch' in sys.modules)"
    done = child.lowtide("run", "--cpu", PYTHON, "-c", program, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "False False\n")
    assert done.stderr == "note: no tensor was served: the program did not import PyTorch\n"
    done = child.lowtide("record", PYTHON, "-c", program, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == "False False\n"
    assert "did not import PyTorch" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_done_is_one_line_and_the_program_goes_on(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    program = "import torch; print(torch.ones(3).sum().item())"
    done = child.lowtide("run", "--device", PYTHON, "-c", program, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "3.0\n")
    assert done.stderr.startswith("lowtide: not serving device memory: ") and done.stderr.count("\n") == 1
    done = child.lowtide("run", "--device", "--strict", PYTHON, "-c", program, cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == ""


def test_the_sitecustomize_of_the_machine_is_still_run(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nprint('mine', __name__)\nmark = 5\n")
    program = "import sitecustomize, torch; print(sitecustomize.mark)"
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = child.lowtide("run", "--cpu", PYTHON, "-c", program, cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("mine sitecustomize\n5\n")


def test_a_python_without_the_package_gets_this_one(tmp_path: Path) -> None:
    import torch

    others = tmp_path / "others"
    others.mkdir()
    for installed in Path(torch.__file__).parents[1].iterdir():
        if not installed.name.startswith("lowtide"):
            (others / installed.name).symlink_to(installed)
    bare = getattr(sys, "_base_executable", PYTHON)
    has_it = [bare, "-c", "import torch, importlib.util; assert importlib.util.find_spec('lowtide')"]
    if child.command(has_it, cwd=tmp_path, timeout=60, PYTHONPATH=str(others)).returncode == 0:
        pytest.skip("every Python here has the package")
    words = ["record", "-o", "t.csv.gz", bare, "-c", "import torch; torch.ones(1 << 20)"]
    done = child.lowtide(*words, cwd=tmp_path, PYTHONPATH=str(others))
    assert done.returncode == 0, done.stderr
    assert len(child.rows(tmp_path / "t.csv.gz")) == 2


def test_every_process_has_a_file(tmp_path: Path) -> None:
    (tmp_path / "both.py").write_text(
        "import multiprocessing, torch\n"
        "def work():\n"
        "    torch.ones(1 << 20)\n"
        "if __name__ == '__main__':\n"
        "    torch.ones(1 << 21)\n"
        "    child = multiprocessing.get_context('spawn').Process(target=work)\n"
        "    child.start()\n"
        "    child.join()\n"
    )
    done = child.lowtide("record", "-o", "t.csv.gz", "--", PYTHON, "both.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 processes were recorded" in done.stderr
    files = sorted(tmp_path.glob("t.*.csv.gz"))
    assert len(files) == 2 and not (tmp_path / "t.csv.gz").exists()
    assert all(file.name in done.stderr for file in files)
    sizes = sorted(int(child.rows(file)[0]["bytes"]) for file in files)
    assert sizes == [4 << 20, 8 << 20]


def test_mistakes_are_told(tmp_path: Path) -> None:
    for arguments, code, words in [
        (["run", "--device", "--prefault", PYTHON], 2, "is for the host's memory"),
        (["run", "--cpu"], 2, "<COMMAND>"),
        (["run", "--cpu", "surely-not-there"], 127, "cannot run surely-not-there"),
        (["run", "--cpu", "--limit", "1GiB", PYTHON], 2, "--device"),
        (["record", "-o", "x.json", PYTHON], 2, "named as one"),
        (["record", "-o", "no/x.csv", PYTHON], 2, "folder"),
    ]:
        done = child.lowtide(*arguments, cwd=tmp_path)
        assert done.returncode == code, (arguments, done.stderr)
        assert words in done.stderr and "hint: " in done.stderr, done.stderr
