"""A live source whose tables are replicated, for tests that follow what errors advise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.appliance.operated_site import operated_site
from tests.proving.served import served_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.appliance.operated_site import Site
    from tests.proving.served import Served


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A stand-in that takes SQL."""
    with served_source(tmp_path_factory.mktemp("advice") / "source") as source:
        yield source


@pytest.fixture
def site(
    served: Served, tmp_path: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> Site:
    """Two tables, loaded and replicated."""
    return operated_site(served, tmp_path, postgres_database, monkeypatch)
