"""A source of many tables, to count the queries about them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.oracle_net.row_versions import RowVersions
from olr_pg.simulator.oracle_net.serve import own_tables
from olr_pg.simulator.sql.scripts import simulate_script
from olr_pg.simulator.writer.instance import Pace
from tests.oracle.live_source import LiveSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OWNER = "APP"
FEW, MANY = 5, 50


def many_tables(folder: Path, count: int) -> LiveSource:
    """A live source of `count` tables with keys, checks, defaults and LOBs, and one row each."""
    script = list(_statements(count))
    steps = [
        SimpleNamespace(session="a", text=text, errors=(), line=line, binds=())
        for line, text in enumerate([*script, "COMMIT"])
    ]
    shape = replace(demo_shape(), pace=Pace(log_blocks=400))
    live = LiveSource(simulate_script(7, folder / "source", shape, steps, len(steps)), folder)
    rows = RowVersions(live.state.catalogue, own_tables(live.summary.snapshot))
    rows.read_start(folder / "source" / "tables", live.summary.snapshot.scn)
    live.archive_all()
    return live


def _statements(count: int) -> Iterator[str]:
    for number in range(count):
        yield (
            f"CREATE TABLE T{number:02} (ID NUMBER(9) PRIMARY KEY,"
            " AMOUNT NUMBER(9,2), NAME VARCHAR2(20) DEFAULT 'none', AT DATE, BODY CLOB,"
            f" CONSTRAINT C{number:02} CHECK (AMOUNT > 0))"
        )
        yield f"INSERT INTO T{number:02} (ID, AMOUNT, NAME, BODY) VALUES (1, 2, 'a', 'text')"


def asked(live: LiveSource) -> Counter[str]:
    """The statements that were sent to the source: how often, without names of tables and the
    number of values in a list. Reads of rows are left out.
    """
    heard = live.server.heard
    assert len(heard) < (heard.maxlen or 0), "some were forgotten"
    found = Counter[str]()
    for sql, _ in live.server.heard:
        text = re.sub(r"(:\w+)(, :\w+)*", ":v", re.sub(r"\bT\d\d\b", "T", sql))
        if f'"{OWNER}"."T"' not in text:
            found[text] += 1
    return found
