"""Python runs this before a program that was started by `lowtide run`, `record` or `watch`: it waits until the program
has imported PyTorch, and then does what was asked. A program that never does so is left alone.

The `sitecustomize` of the machine, which this one stands in front of, is run first. Every Python that the program
starts runs this, so that little is imported here.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_shadowed() -> None:
    """Runs the `sitecustomize` that would have been run without this one, and puts it in its place."""
    others = [place for place in sys.path if os.path.abspath(place or os.curdir) != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    import importlib.util

    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _report_import() -> None:
    """Leaves a byte for `lowtide run`, which says at the end where no process of the program imported PyTorch."""
    path = os.environ.get("LOWTIDE_IMPORTED")
    if path:
        try:
            with open(path, "ab") as file:
                file.write(b"1")
        except OSError:
            pass


def _start() -> None:
    """PyTorch is there: does what was asked."""
    _report_import()
    more = os.environ.get("LOWTIDE_RECORD") or os.environ.get("LOWTIDE_MARK")
    if os.environ.get("LOWTIDE_RUN") == "host" and not more:
        _follow_steps()
        return
    import importlib.util

    try:
        if importlib.util.find_spec("lowtide") is None:
            _load_own()
        from lowtide.torch.start import start
    except Exception as error:
        if os.environ.get("LOWTIDE_STRICT", "").lower() not in ("", "0", "false"):
            raise
        print(f"lowtide: nothing was done: {' '.join(str(error).split())}", file=sys.stderr)
        return
    start()


def _follow_steps() -> None:
    """Tells the library that serves the host of every step of an optimizer. The package is not needed for that, and a
    program is found by its period where this cannot be done."""
    import ctypes

    try:
        library = ctypes.CDLL(None)
        # Tensors come and go in every loop, also in one that has no optimizer.
        library.lowtide_expect_steps()
        step = library.lowtide_step
        from torch.optim.optimizer import register_optimizer_step_post_hook
    except (AttributeError, ImportError, OSError):
        return
    step.argtypes, step.restype = [], None

    def stepped(*_: Any) -> None:
        steps = sys.modules.get("lowtide.torch.steps")
        # A program that uses the package as well is followed by that.
        if steps is None or not steps.follows():
            step()

    register_optimizer_step_post_hook(stepped)


def _load_own() -> None:
    """Loads the package that this file is part of, from where it is: the program's Python does not have it."""
    import importlib.util

    package = os.path.dirname(_HERE)
    spec = importlib.util.spec_from_file_location(
        "lowtide", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no package in {package}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["lowtide"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules["lowtide"]
        raise


class _Loader:
    """The loader of PyTorch, and what follows it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
        module.__loader__ = self._inner
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        self._inner.exec_module(module)
        _start()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Finder:
    """Finds PyTorch as it would be found without this, until it is imported: some only ask whether it is there."""

    def __init__(self) -> None:
        self._asking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "torch" or self._asking:
            return None
        import importlib.util

        self._asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


try:
    _run_shadowed()
finally:
    if any(os.environ.get(name) for name in ("LOWTIDE_RUN", "LOWTIDE_RECORD", "LOWTIDE_MARK")):
        sys.meta_path.insert(0, _Finder())
