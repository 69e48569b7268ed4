"""LOB values that redo does not hold whole, read by ROWID from the stand-in."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.appliance.appliance import run_appliance
from olr_pg.capture.logs import open_log
from olr_pg.config.reading import load_config
from olr_pg.config.source_section import OracleSource
from olr_pg.dictionary.lob_delivery import with_raw_xml
from olr_pg.dictionary.model import Column, Table
from olr_pg.oracle.lob_fetch import LobFetcher, query_of
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.scalars import format_rowid
from olr_pg.simulator.fields.cells import BLOB, CLOB, secure_extents, secure_in_row
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.session import Fault
from olr_pg.simulator.oracle_net.state import ARCHIVE, OracleState
from tests.lobs.lob_decoding import Decoded, decode
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ, LobRedo
from tests.lobs.lob_redo import snapshot as lob_snapshot
from tests.lobs.lob_redo import table as lob_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

DOCS = lob_table()
LARGE = bytes(range(256)) * 9_000
TEXT = "Zażółć gęślą jaźń 𝄞\r\n" * 100
OLD = secure_extents(BLOB, 7, len(LARGE), ((0x100, 40),))
NEW = secure_extents(BLOB, 7, len(LARGE), ((0x200, 40),), 2)


def rowid(slot: int) -> str:
    return format_rowid(TABLE_OBJ, BLOCK, slot)


class Documents:
    """APP.DOCS behind the stand-in, the state that its rows have by now."""

    def __init__(self) -> None:
        self.state = OracleState(replace(lob_snapshot(), scn=1 << 40), dbid=1)
        self.server = StandIn(self.state)
        self.state.catalogue.create_table(DOCS)
        self.source = OracleSource.model_validate(
            {"user": "olr", "password": "olr", "server": self.server.connect_string}
        )
        self.oracle = OracleDatabase(self.source)
        self.fetcher = LobFetcher(lambda _table: self.oracle)

    def put(self, slot: int, text: str | None, image: bytes | None) -> None:
        self.state.catalogue.update(
            'INSERT INTO "APP"."DOCS" VALUES (?, ?, ?, ?)', slot, text, image, rowid(slot)
        )

    def fetched(self, slot: int, column: int) -> bytes | None:
        """The delivered bytes of a column of a row."""
        found = self.fetcher.fetch(DOCS, DOCS.columns[column], rowid(slot), 900, room)
        assert found is not None
        return None if found.content is None else found.content.tobytes()

    def close(self) -> None:
        self.oracle.close()
        self.server.close()
        assert self.server.malformed == []


def room(size: int) -> npt.NDArray[np.uint8]:
    return np.empty(size, np.uint8)


@pytest.fixture
def documents() -> Iterator[Documents]:
    made = Documents()
    yield made
    made.close()


def partial_writes(redo: LobRedo | None = None) -> LobRedo:
    """Two rows whose images are only partly in the redo; the text of one is no locator."""
    redo = redo or LobRedo()
    redo.begin()
    redo.direct_page(3, 7, 0x200, LARGE[:8060])
    redo.update(0, Decimal(1), {3: OLD}, {3: NEW})
    redo.insert(Decimal(2), secure_in_row(CLOB, 1, "hi".encode("utf-16-be")), OLD)
    redo.insert(Decimal(3), b"no locator", None)
    redo.end()
    return redo


def slots_of(decoded: Decoded) -> list[str]:
    return [change["rowid"] for change in decoded.changes]


@pytest.mark.parametrize("split_blocks", [1 << 20, 1])
def test_values_come_from_the_rows(documents: Documents, tmp_path: Path, split_blocks: int) -> None:
    without = decode(partial_writes(), tmp_path)
    assert without.account.lob_unavailable == 3
    for number, change in enumerate(without.changes):
        documents.state.catalogue.update(
            'INSERT INTO "APP"."DOCS" VALUES (?, ?, ?, ?)', number, TEXT, LARGE, change["rowid"]
        )
    documents.put(0, TEXT, LARGE)
    with capture_logs() as logs:
        decoded = decode(
            partial_writes(), tmp_path, split_blocks=split_blocks, lob_source=documents.fetcher
        )
    assert [(row.get("TEXT"), row.get("IMAGE")) for row in decoded.after] == [
        (None, LARGE.hex()),
        ("hi", LARGE.hex()),
        (TEXT, None),
    ]
    assert (decoded.account.lob_fetched, decoded.account.lob_unavailable) == (3, 0)
    assert not [log for log in logs if "code" in log]


def test_every_kind_of_value(documents: Documents) -> None:
    documents.put(1, TEXT, LARGE)
    documents.put(2, "", b"")
    documents.put(3, None, None)
    assert [documents.fetched(1, at) for at in (1, 2)] == [TEXT.encode("utf-16-be"), LARGE]
    assert [documents.fetched(2, at) for at in (1, 2)] == [b"", b""]
    assert [documents.fetched(3, at) for at in (1, 2)] == [None, None]


def test_where_undo_is_gone_the_value_of_now_is_taken_and_said(documents: Documents) -> None:
    documents.put(1, TEXT, None)
    documents.put(2, "two", None)
    documents.state.catalogue.undo_scn = 901
    with capture_logs() as logs:
        assert documents.fetched(1, 1) == TEXT.encode("utf-16-be")
        assert documents.fetched(2, 1) == "two".encode("utf-16-be")
    (warning,) = [log for log in logs if log.get("code")]
    assert (warning["code"], warning["table"], warning["column"]) == (
        "OLR-02131",
        "APP.DOCS",
        "TEXT",
    )
    assert "ORA-01555" in warning["reason"]


@pytest.mark.parametrize("case", ["no row", "no privilege", "down"])
def test_what_cannot_be_read_stays_unavailable(
    documents: Documents, tmp_path: Path, case: str
) -> None:
    slots = slots_of(decode(partial_writes(), tmp_path))
    if case != "no row":
        for slot in slots:
            documents.state.catalogue.update(
                'INSERT INTO "APP"."DOCS" VALUES (1, ?, ?, ?)', TEXT, LARGE, slot
            )
    if case == "no privilege":
        documents.state.catalogue.denied.add("DOCS")
    if case == "down":
        documents.server.faults.add(Fault("execute", "DOCS", times=100, drop=True))
    with capture_logs() as logs:
        decoded = decode(partial_writes(), tmp_path, lob_source=documents.fetcher, in_parts=False)
    assert decoded.account.lob_fetched == 0
    assert decoded.account.lob_unavailable == 3
    assert decoded.after == [{"ID": 2, "TEXT": "hi"}, {"ID": 3, "IMAGE": None}]
    said = sorted((log["code"], log["column"]) for log in logs if "code" in log)
    assert said == [
        ("OLR-02120", "IMAGE"),
        ("OLR-02122", "TEXT"),
        ("OLR-02130", "IMAGE"),
        ("OLR-02130", "TEXT"),
    ]


def test_xml_is_asked_for_as_text_and_json_not_at_all(documents: Documents) -> None:
    xml = Column("DOC", 1, 1, 1, 113, 4000, xml=True)
    table = Table("APP", "PAGES", 9_000, 9_000, (xml, Column("J", 2, 2, 2, 119, 4000)))
    assert query_of(table, xml, 5) == (
        'SELECT t."DOC".GETCLOBVAL() FROM "APP"."PAGES" AS OF SCN :scn t WHERE t.ROWID = :id'
    )
    documents.state.catalogue.create_table(table)
    documents.state.catalogue.update(
        'INSERT INTO "APP"."PAGES" VALUES (?, NULL, ?)', "<a>é</a>", rowid(1)
    )
    found = documents.fetcher.fetch(table, xml, rowid(1), 5, room)
    assert found is not None
    assert found.content is not None
    assert found.content.tobytes() == "<a>é</a>".encode()
    assert documents.fetcher.fetch(table, table.columns[1], rowid(1), 5, room) is None
    # No query gives binary XML as it is stored.
    raw = with_raw_xml(table)
    assert documents.fetcher.fetch(raw, raw.columns[0], rowid(1), 5, room) is None


def write_config(server: StandIn, folder: Path, target: str, **source: Any) -> Path:
    config = folder / "config.json"
    config.write_text(
        json.dumps(
            {
                "context": {"data": str(folder / "data")},
                "source": {
                    "user": "olr",
                    "password": "olr",
                    "server": server.connect_string,
                    "path-mapping": [ARCHIVE, str(folder / "mount")],
                    "fetch-lobs": "unavailable",
                    **source,
                },
                "target": {"address": "127.0.0.1:0"},
                "apply": {
                    "connect-string": target,
                    "tables": ["APP.DOCS"],
                    "create-tables": True,
                    "on-conflict": "skip",
                },
                "spark": {"master": "local[2,2]"},
            }
        )
    )
    return config


@pytest.mark.usefixtures("one_session")
def test_a_live_run_puts_them_into_postgres(
    documents: Documents, tmp_path: Path, postgres_database: str
) -> None:
    mount = tmp_path / "mount"
    mount.mkdir()
    log = partial_writes().write(mount, group=1)
    header = open_log(str(log)).header
    documents.state.archived(log.name, header)
    for slot in slots_of(decode(partial_writes(), tmp_path)):
        documents.state.catalogue.update(
            'INSERT INTO "APP"."DOCS" VALUES (1, ?, ?, ?)', TEXT, LARGE, slot
        )
    config = write_config(documents.server, tmp_path, postgres_database)
    run_appliance(load_config(config), once=True, apply=True)
    with psycopg.connect(postgres_database) as connection:
        rows = connection.execute("SELECT id, text, image FROM app.docs ORDER BY id").fetchall()
    assert [(int(number), text, image) for number, text, image in rows] == [
        (2, "hi", LARGE),
        (3, TEXT, None),
    ]


@pytest.mark.usefixtures("one_session")
def test_of_two_containers_each_is_asked_for_its_own(
    tmp_path: Path, postgres_database: str
) -> None:
    """Their tables, ROWIDs and XIDs are the same, and the values are not."""
    states, database = dict[str, OracleState](), lob_snapshot().database
    redo = LobRedo()
    for con_id, name in ((3, "PDB1"), (4, "PDB2")):
        own = replace(database, con_id=con_id, con_name=name)
        state = OracleState(replace(lob_snapshot(), scn=1 << 40, database=own), dbid=1)
        state.catalogue.create_table(DOCS)
        for slot in slots_of(decode(partial_writes(), tmp_path)):
            state.catalogue.update(
                'INSERT INTO "APP"."DOCS" VALUES (1, ?, ?, ?)', name + TEXT, LARGE, slot
            )
        states[name] = state
        redo.con_id, redo.sequence, redo.slot = con_id, 100, 0
        partial_writes(redo)
    server = StandIn(states["PDB1"])
    server.containers = states
    mount = tmp_path / "mount"
    mount.mkdir()
    log = redo.write(mount, group=1)
    for state in states.values():
        state.archived(log.name, open_log(str(log)).header)
    config = write_config(server, tmp_path, postgres_database, containers=["PDB1", "pdb2"])
    try:
        run_appliance(load_config(config), once=True, apply=True)
    finally:
        server.close()
    with psycopg.connect(postgres_database) as connection:
        found = {
            name: connection.execute(f"SELECT text FROM {name.lower()}_app.docs WHERE id = 3")
            .fetchall()
            for name in states
        }  # fmt: skip
    assert found == {name: [(name + TEXT,)] for name in states}
    assert server.malformed == []


def test_half_a_surrogate_pair_is_replaced(documents: Documents) -> None:
    identity, text, image = DOCS.columns
    text = replace(text, charset_id=2000, charset_form=2)
    table = replace(DOCS, name="NATIONAL", columns=(identity, text, image))
    documents.state.catalogue.create_table(table)
    broken = "half \ud83d of a pair \U0001f600".encode("utf-16-be", "surrogatepass")
    insertion = 'INSERT INTO "APP"."NATIONAL" VALUES (?, ?, ?, ?)'
    documents.state.catalogue.update(insertion, 1, broken, None, rowid(1))
    found = documents.fetcher.fetch(table, text, rowid(1), 900, room)
    assert found is not None
    assert found.content is not None
    assert found.content.tobytes().decode("utf-16-be") == "half \ufffd of a pair \U0001f600"
