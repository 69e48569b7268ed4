"""A small database behind the stand-in, with what the tests of the live source ask for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from olr_pg.config.source_section import OracleSource
from olr_pg.dictionary.model import (
    AddedColumn,
    Column,
    Database,
    KeyKind,
    Lob,
    LobSegment,
    Snapshot,
    Table,
)
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import OracleState
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.oracle.live_source import LiveSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.simulator.simulated_files import Summary

DBID = 1_385_559_638
SCN = 5_000


def number(name: str, at: int, *, nullable: bool = True) -> Column:
    return Column(name, at, at, at, 2, 22, precision=12, scale=0, nullable=nullable)


def text(name: str, at: int) -> Column:
    return Column(name, at, at, at, 1, 40, charset_id=873, charset_form=1)


ORDERS = Table(
    *("SHOP", "ORDERS", 72_000, 72_000),
    (number("ID", 1, nullable=False), number("LINE", 2, nullable=False), text("NAME", 3)),
    row_dependencies=False,
    key_kind=KeyKind.PRIMARY,
    # The order of the key is not that of the columns.
    key=(2, 1),
)
_LOB = Lob(
    (
        LobSegment(72_101, 72_101, 72_102, 72_102, 8192),
        LobSegment(72_103, 72_203, 72_104, 72_204, 8192),
    ),
    securefile=True,
    chunk_blocks=1,
    deduplicated=True,
)
NOTES = Table(
    *("SHOP", "Notes", 72_100, 72_100),
    (
        Column("TWICE", 0, 4, 3, 2, 22, virtual=True),
        number("ID", 1, nullable=False),
        Column("BODY", 2, 2, 2, 112, 4000, charset_id=873, charset_form=1, lob=_LOB),
        Column("GUARD", 3, 3, 0, 23, 126, hidden=True, guard=True),
        replace(text("SIZE", 4), intcol=5, col=4, char_length=10, added=AddedColumn(b"XL", 0)),
        replace(number("RANK", 5), intcol=6, col=5, added=AddedColumn(b"\xc1\x02")),
    ),
    partitions=(72_110, 72_111),
    segments=(72_110, 72_211),
    row_dependencies=False,
    key_kind=KeyKind.UNIQUE,
    key=(1,),
)
LOOSE = Table("SHOP", "LOOSE", 72_300, None, (text("WORDS", 1),), row_dependencies=False)
TABLES = (ORDERS, NOTES, LOOSE)


def make_snapshot() -> Snapshot:
    facts = Database("SIMDB", 3, "SIMPDB", 77, (2_000, 1_000), 55, big_endian=False)
    return Snapshot(SCN, facts, TABLES)


@pytest.fixture
def state() -> OracleState:
    return OracleState(make_snapshot(), dbid=DBID)


@pytest.fixture
def stand_in(state: OracleState) -> Iterator[StandIn]:
    with StandIn(state) as server:
        yield server
        assert server.malformed == []


@pytest.fixture
def source(stand_in: StandIn) -> OracleSource:
    return OracleSource.model_validate(
        {"user": "olr", "password": "olr", "server": stand_in.connect_string}
    )


@pytest.fixture
def oracle(source: OracleSource) -> Iterator[OracleDatabase]:
    database = OracleDatabase(source)
    yield database
    database.close()


@pytest.fixture(scope="session")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """A small shop's redo, in several logs."""
    shape = replace(demo_shape(), pace=Pace(log_blocks=40))
    folder = tmp_path_factory.mktemp("source")
    made = simulate(7, folder, workload="orders", size=130_000, shape=shape)
    assert len(made.logs) > 4
    return made


@pytest.fixture
def live(summary: Summary, tmp_path: Path) -> Iterator[LiveSource]:
    """The shop as a live database."""
    source = LiveSource(summary, tmp_path)
    yield source
    source.close()
