"""The package as it is installed: what importing costs, what it brings, and that stubs, sources and metadata hold."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType

import child
import lowtide
import pytest
from lowtide import _lowtide

PACKAGE = Path(lowtide.__file__).parent
REPOSITORY = Path(__file__).parents[2]


def test_importing_takes_less_than_50_ms() -> None:
    program = "import time; start = time.perf_counter(); import lowtide; print(time.perf_counter() - start)"
    assert min(float(child.run(program)) for _ in range(7)) < 0.050


@pytest.mark.parametrize("module", ["lowtide", "lowtide._lowtide", "lowtide.torch", "lowtide.__main__"])
def test_pytorch_is_not_imported_until_it_is_asked_for(module: str) -> None:
    child.run(f"import sys, {module}; assert not {{'torch', 'numpy'}} & set(sys.modules)")


def test_the_command_line_is_the_same() -> None:
    done = child.lowtide("--version", cwd=Path.cwd())
    assert (done.returncode, done.stdout.split()) == (0, ["lowtide", lowtide.__version__])
    assert _lowtide.__version__ == lowtide.__version__
    unknown = child.lowtide("no-such-verb", cwd=Path.cwd())
    assert unknown.returncode == 2 and "no-such-verb" in unknown.stderr


def test_the_script_is_the_command_line() -> None:
    script = Path(sys.executable).with_name("lowtide")
    if not script.exists():
        pytest.skip("the package is not installed, only imported")
    told = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=60).stdout
    assert told.split() == ["lowtide", lowtide.__version__]


def test_the_metadata_asks_for_nothing_but_python() -> None:
    try:
        told = importlib.metadata.metadata("lowtide")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed, only imported")
    required = [line for line in told.get_all("Requires-Dist") or [] if "extra ==" not in line]
    assert required == []
    assert told["Version"] == lowtide.__version__
    assert told["Requires-Python"] == ">=3.11"


def test_an_installed_package_is_typed_and_brings_no_tests() -> None:
    assert (PACKAGE / "py.typed").is_file()
    assert (PACKAGE / "_lowtide.pyi").is_file()
    assert (PACKAGE / "_inject" / "sitecustomize.py").is_file()
    assert not list(PACKAGE.rglob("test*"))


def sources() -> list[Path]:
    folders = [REPOSITORY / "python", REPOSITORY / "benches"]
    return sorted(path for folder in folders for path in folder.rglob("*.py*") if path.suffix in (".py", ".pyi"))


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_a_source_compiles_without_a_warning(path: Path) -> None:
    text = path.read_text()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile(text, str(path), "exec", dont_inherit=True)
    assert ast.get_docstring(ast.parse(text)), "a module says what it is for"
    long = [number for number, line in enumerate(text.splitlines(), 1) if len(line) > 120]
    assert not long, f"lines longer than 120 columns: {long}"
    assert text.endswith("\n") and "\t" not in text and " \n" not in text


def stub() -> ast.Module:
    return ast.parse((PACKAGE / "_lowtide.pyi").read_text())


def test_the_stubs_name_what_the_module_has() -> None:
    named = set()
    for node in stub().body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            named.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            named.add(node.target.id)
    own = {name for name in dir(_lowtide) if not name.startswith("_") or name == "__version__"}
    own = {name for name in own if not isinstance(getattr(_lowtide, name), ModuleType)}
    assert named == own, f"only in the stubs: {named - own}; only in the module: {own - named}"


FUNCTIONS = [node for node in stub().body if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("node", FUNCTIONS, ids=lambda node: node.name)
def test_a_stub_has_the_parameters_of_its_function(node: ast.FunctionDef) -> None:
    function = getattr(_lowtide, node.name, None)
    assert function is not None, "the module has no such function"
    assert node.returns is not None
    assert all(argument.annotation for argument in ast.walk(node.args) if isinstance(argument, ast.arg))
    own = [
        (parameter.name, parameter.kind.name, default(parameter.default))
        for parameter in inspect.signature(function).parameters.values()
    ]
    assert written(node.args) == own


def default(value: object) -> str | None:
    return None if value is inspect.Parameter.empty else "..." if value is ... else repr(value)


def written(arguments: ast.arguments) -> list[tuple[str, str, str | None]]:
    """The parameters of a stub: names, kinds and defaults."""
    plain = [(argument, "POSITIONAL_ONLY") for argument in arguments.posonlyargs]
    plain += [(argument, "POSITIONAL_OR_KEYWORD") for argument in arguments.args]
    missing: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    with_defaults = [*zip(plain, [*missing, *arguments.defaults], strict=True)]
    with_defaults += [
        ((argument, "KEYWORD_ONLY"), value)
        for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return [
        (argument.arg, kind, None if value is None else ast.unparse(value)) for (argument, kind), value in with_defaults
    ]
