"""The number of queries about the dictionary does not depend on the number of tables."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from olr_pg.appliance.all_checks import check_live
from olr_pg.capture.lineage import Lineage
from olr_pg.config.reading import load_config
from olr_pg.config.source_section import OracleSource
from olr_pg.load import sources
from olr_pg.oracle.live_source import LiveDatabase
from olr_pg.schema.source_inventory import read_schemas
from tests.oracle.many_tables import FEW, MANY, OWNER, asked, many_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.config.model import Config
    from tests.oracle.live_source import LiveSource


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[LiveSource]]:
    """A source of few tables, and one of many, whose operations may be NOLOGGING."""
    made = [many_tables(tmp_path_factory.mktemp("source"), count) for count in (FEW, MANY)]
    for live in made:
        live.state.catalogue.update('UPDATE SYS."V$DATABASE" SET "FORCE_LOGGING" = \'NO\'')
    yield made
    for live in made:
        live.close()


def checked(config: Config, source: OracleSource) -> int:
    return len(check_live(config, source, None, for_load=False).tables)


def checked_for_load(config: Config, source: OracleSource) -> int:
    return len(check_live(config, source, None, for_load=True).tables)


def prepared_for_load(config: Config, _: OracleSource) -> int:
    with sources.open_tables(config, for_load=True) as tables:
        return len(tables.sources(tables.choose(())))


def started(config: Config, source: OracleSource) -> int:
    assert config.apply is not None
    data = Path(config.context.data)
    data.mkdir()
    lineage = Lineage(data / "lineage.json")
    with closing(LiveDatabase(source, lineage)) as database:
        _, tables = database.resolve(config.apply.table_query)
        database.scan(0, 0)
    return len(tables)


def assessed(config: Config, _: OracleSource) -> int:
    (found,) = read_schemas(config)
    return len(found.inventory.tables)


@pytest.mark.parametrize(
    "command", [checked, checked_for_load, prepared_for_load, started, assessed]
)
def test_more_tables_are_asked_about_with_as_many_queries(
    lives: list[LiveSource],
    tmp_path: Path,
    command: Callable[[Config, OracleSource], int],
) -> None:
    counts = []
    for live, count in zip(lives, (FEW, MANY), strict=True):
        folder = tmp_path / str(count)
        folder.mkdir()
        config = load_config(live.write_config(folder, "postgresql:///none", tables=[f"{OWNER}.*"]))
        live.server.heard.clear()
        assert isinstance(config.source, OracleSource)
        assert command(config, config.source) == count
        counts.append(asked(live))
    few, many = counts
    assert many == few
