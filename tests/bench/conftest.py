"""Inputs of benchmarks that are made without a process for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make inputs in this process: one of their own imports the simulator, for a second each."""

    def do_here(_name: str, work: Callable[..., object], *arguments: object) -> None:
        work(*arguments)

    monkeypatch.setattr("olr_pg.bench.inputs.do_apart", do_here)
