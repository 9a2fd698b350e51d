"""Which tests are slow. `make quick` leaves them out.

tests/slow.txt names the functions whose cases took more than 0.3 seconds in all when they were last
timed: `make test TIMED=--record-slow`, on a machine that does nothing else. Names are without files, so
that moving a test changes nothing.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

SLOW = Path(__file__).with_name("slow.txt")
LIMIT_SECONDS = 0.3
"""With this, what is left takes a minute on two cores."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-slow", action="store_true", help="time the tests that run, for tests/slow.txt")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--record-slow") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Timing())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = set(SLOW.read_text().split())
    for item in items:
        if function_of(item.name) in slow:
            item.add_marker(pytest.mark.slow)


class Timing:
    """How long the tests of this run take; of those that do not run, what was known is kept."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[function_of(report.location[2])] += report.duration

    def pytest_sessionfinish(self) -> None:
        known = set(SLOW.read_text().split()) - set(self.seconds)
        found = {name for name, seconds in self.seconds.items() if seconds > LIMIT_SECONDS}
        SLOW.write_text("".join(f"{name}\n" for name in sorted(known | found)))


def function_of(test: str) -> str:
    return test.partition("[")[0]
