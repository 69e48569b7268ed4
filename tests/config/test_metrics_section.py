"""The metrics table: what is asked of it, and its defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.config.reading import ConfigError
from tests.config.test_model import parse

if TYPE_CHECKING:
    from pathlib import Path

POSTGRES = {"connect-string": "postgresql://h/d", "table-name": "metrics"}


def test_the_table_has_defaults(tmp_path: Path) -> None:
    found = parse(tmp_path, metrics={"postgres": POSTGRES}).metrics
    assert found is not None
    assert found.postgres is not None
    assert (found.postgres.table_scheme, found.postgres.interval_seconds) == ("public", 10)


@pytest.mark.parametrize("keys", [{"table-name": ""}, {"interval-seconds": 0}, {"keep-hours": 0}])
def test_what_makes_no_sense_is_refused(tmp_path: Path, keys: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        parse(tmp_path, metrics={"postgres": POSTGRES | keys})


@pytest.mark.parametrize(("given", "used"), [({}, "auto"), ({"tables": "changed"}, "changed")])
def test_the_tables_with_metrics_of_their_own(
    tmp_path: Path, given: dict[str, str], used: str
) -> None:
    found = parse(tmp_path, metrics=given).metrics
    assert found is not None
    assert found.tables == used
