"""Runs `one.py` in processes that are forked from one in which PyTorch is imported already, before it has seen a
device: to import it takes longer than many runs do.

    with Forked() as forked:
        ended = forked.run(["resnet50", "native", "--steps=28", "--first=10"], timeout=600)
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from threading import Timer
from types import TracebackType

# What workloads import; one that is missing is missed by the workload that needs it.
IMPORTED = ["torch", "torchvision", "transformers", "transformers.models.llama.modeling_llama"]


class Forked:
    """The process that imports and forks. It is started for the first run, and anew when it was lost."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._stop()

    def run(self, arguments: list[str], timeout: float) -> subprocess.CompletedProcess[str]:
        """What `one.py` with those arguments writes and ends with."""
        with tempfile.TemporaryDirectory() as folder:
            out, err = (Path(folder, name) for name in ("out", "err"))
            status = self._ask({"arguments": arguments, "out": str(out), "err": str(err)}, timeout)
            written = [path.read_text() if path.exists() else "" for path in (out, err)]
        return subprocess.CompletedProcess(arguments, status, *written)

    def _ask(self, request: dict[str, object], timeout: float) -> int:
        if self._server is None or self._server.poll() is not None:
            command = [sys.executable, __file__]
            pipe = subprocess.PIPE
            self._server = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
        server = self._server
        late: list[bool] = []
        timer = Timer(timeout, lambda: (late.append(True), self._kill(server)))
        timer.start()
        try:
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            answer = server.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
        if late:
            server.wait()
            self._server = None
            raise subprocess.TimeoutExpired("one.py", timeout)
        # Without an answer the process is gone, and the run with it.
        return int(answer) if answer.strip() else server.wait()

    def _stop(self) -> None:
        if self._server and self._server.poll() is None:
            self._kill(self._server)
            self._server.wait()

    @staticmethod
    def _kill(server: subprocess.Popen[str]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)


def serve() -> None:
    """Answers each line on the standard input with how the run that it asks for has ended."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for name in IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # What is imported has threads, and holds no locks while it waits.
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=__name__)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            run(request)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def run(request: dict[str, object]) -> None:
    """Makes a run and ends the process."""
    import one

    for number, path in ((1, request["out"]), (2, request["err"])):
        os.dup2(os.open(str(path), os.O_WRONLY | os.O_CREAT), number)
    sys.argv = ["one.py", *request["arguments"]]
    status = 1
    try:
        one.main()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    serve()
