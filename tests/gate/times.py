"""Pytest plugin: a table of times per group of the gate, printed just before pytest's closing line."""

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest


class Times:
    """Adds up what set-up, call and tear-down of every test took, by folder under tests/."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.tests: defaultdict[str, set[str]] = defaultdict(set)
        self.failed: defaultdict[str, set[str]] = defaultdict(set)

    def group(self, nodeid: str) -> str:
        """Name the folder of a test, two levels deep at most: `tests/domain`."""
        folder = Path(nodeid.split("::", 1)[0]).parent
        return "/".join(folder.parts[:2]) or "tests"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        group = self.group(report.nodeid)
        self.seconds[group] += report.duration
        self.tests[group].add(report.nodeid)
        if report.failed:
            self.failed[group].add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            group = self.group(report.nodeid)
            self.tests[group].add(report.nodeid)
            self.failed[group].add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        write = terminalreporter.write_line
        terminalreporter.section("times per group")
        total = 0.0
        for name, seconds, ok in json.loads(os.environ.get("SLIPWAY_GATE_ROWS", "[]")):
            total += seconds
            write(f"{name:<28}{seconds:>8.1f} s  {'ok' if ok else 'FAILED'}", red=not ok)
        for name in sorted(self.tests):
            total += self.seconds[name]
            bad = len(self.failed[name])
            said = f"{len(self.tests[name])} tests" + (f", {bad} FAILED" if bad else "")
            write(f"{name:<28}{self.seconds[name]:>8.1f} s  {said}", red=bool(bad))
        write(f"{'all, one after the other':<28}{total:>8.1f} s")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Times(config.rootpath), "slipway-times")
