"""What all tests share: those that need a GPU are skipped without one, and that is said."""

from __future__ import annotations

import child
import pytest

NEEDS_DEVICE = "needs a CUDA device and a PyTorch built for it"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not has_device():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=NEEDS_DEVICE))


def has_device() -> bool:
    """Whether PyTorch is installed and finds a CUDA device. Another process is asked: this one stays as it is."""
    return child.start("import torch; raise SystemExit(not torch.cuda.is_available())").returncode == 0


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum(NEEDS_DEVICE in str(report.longrepr) for report in skipped)
    if count:
        terminalreporter.write_line(f"skipped {count} tests: each {NEEDS_DEVICE}", yellow=True, bold=True)
        terminalreporter.write_line("hint: where there is one, `pytest python/tests -m gpu` runs them")
