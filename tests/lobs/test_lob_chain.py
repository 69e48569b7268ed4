"""LOBs from redo into PostgreSQL: Spark, the port and the applier, compared byte for byte."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.config.reading import load_config
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.simulator.fields.cells import (
    BASIC_PAGE,
    BLOB,
    CLOB,
    basic_in_row,
    basic_outside,
    basic_pointers,
    index_data,
    index_key,
    secure_extents,
    secure_in_row,
)
from tests.lobs.lob_redo import LobRedo, snapshot

if TYPE_CHECKING:
    from pathlib import Path


LARGE = bytes(range(256)) * 400
TEXT = "Zażółć gęślą jaźń 𝄞\r\n" * 2_000
BLOCKS = [0x900 + 3 * k for k in range(-(-len(LARGE) // BASIC_PAGE))]


def every_form() -> LobRedo:
    """A log with inserts and updates of every storage form."""
    redo = LobRedo()
    text = TEXT.encode("utf-16-be")
    wide = ((0x1000, 5), (0x2000, 8))
    redo.begin()
    redo.insert(Decimal(1), secure_in_row(CLOB, 1, b"\0h\0i"), secure_in_row(BLOB, 2, b"\0\1"))
    redo.insert(Decimal(2), secure_in_row(CLOB, 3, b""), None)
    redo.direct_pages(2, 4, text, *wide)
    redo.direct_pages(3, 5, LARGE, *wide)
    redo.insert(
        Decimal(3),
        secure_extents(CLOB, 4, len(text), wide),
        secure_extents(BLOB, 5, len(LARGE), wide),
    )
    redo.end()
    redo.begin()
    redo.insert(Decimal(4), basic_in_row(CLOB, 6, b"\0b"), basic_outside(BLOB, 7))
    redo.long_fields(3, 7, LARGE, BLOCKS)
    redo.index_insert(3, index_key(7, 0), index_data(0, len(LARGE), BLOCKS[:4]))
    redo.index_insert(3, index_key(7, 4), index_data(4, 0, BLOCKS[4:12]))
    redo.index_insert(3, index_key(7, 12), index_data(12, 0, BLOCKS[12:]))
    redo.long_fields(3, 8, LARGE[:90_000], BLOCKS)
    redo.insert(Decimal(5), None, basic_pointers(BLOB, 8, 90_000, BLOCKS[:12]))
    redo.end()
    redo.begin()
    old = secure_extents(BLOB, 5, len(LARGE), wide)
    part = secure_extents(BLOB, 5, len(LARGE), ((0x1000, 5), (0x3000, 8)), 2)
    new = secure_in_row(CLOB, 4, "neu".encode("utf-16-be"), 2)
    redo.update(
        2, Decimal(3), {2: secure_extents(CLOB, 4, len(text), wide), 3: old}, {2: new, 3: part}
    )
    redo.end()
    return redo


@pytest.mark.usefixtures("one_session")
def test_every_form_arrives_byte_for_byte(tmp_path: Path, postgres_database: str) -> None:
    every_form().write(tmp_path, group=1)
    write_snapshot(snapshot(), str(tmp_path / "dictionary.json"))
    config = {
        "context": {"data": str(tmp_path / "data")},
        "source": {
            "kind": "offline",
            "dictionary": str(tmp_path / "dictionary.json"),
            "logs": str(tmp_path / "*.arc"),
        },
        "target": {"address": "127.0.0.1:0", "chunk-size": 1024},
        "apply": {
            "connect-string": postgres_database,
            "tables": ["APP.DOCS"],
            "create-tables": True,
        },
        "spark": {"master": "local[2,2]"},
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), "utf-8")
    assert run_appliance(load_config(path), once=True, apply=True) == 0
    with psycopg.connect(postgres_database) as connection:
        rows = connection.execute("SELECT id, text, image FROM app.docs ORDER BY id").fetchall()
        listed = connection.execute(
            "SELECT source_table, target_table, key, column_name, target_column, operation, reason"
            " FROM olr_pg.incomplete"
        ).fetchall()
    # Nothing else tells that row 3 is stale.
    assert listed == [("APP.DOCS", "app.docs", {"id": "3"}, "IMAGE", "image", "update", 2120)]
    assert rows == [
        (1, "hi", b"\0\1"),
        (2, "", None),
        # The BLOB was written in part: the target keeps what it has.
        (3, "neu", LARGE),
        (4, "b", LARGE),
        (5, None, LARGE[:90_000]),
    ]
