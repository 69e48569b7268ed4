"""Snapshots that the dictionary's tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table

CHECKPOINT = "TEST-chkpt-2266634.json"


@pytest.fixture(scope="session")
def checkpoint_path(real_log_dir: Path) -> str:
    return str(real_log_dir / CHECKPOINT)


@pytest.fixture(scope="session")
def real_snapshot(checkpoint_path: str) -> Snapshot:
    return load_snapshot(checkpoint_path)


@pytest.fixture
def checkpoint(checkpoint_path: str) -> dict[str, Any]:
    """The real checkpoint as JSON, to be damaged."""
    document: dict[str, Any] = orjson.loads(Path(checkpoint_path).read_bytes())
    return document


@pytest.fixture(scope="session")
def shop() -> Snapshot:
    """A schema with an ordinary, an oddly named and a refused table, and one table of Oracle's."""
    columns = (
        Column("ID", 1, 1, 1, 2, 22, precision=10, scale=0, nullable=False),
        Column("NOTE", 2, 2, 2, 1, 100, charset_id=873, charset_form=1),
    )

    def table(owner: str, name: str, obj: int, refusal: str | None = None) -> Table:
        return Table(
            owner, name, obj, obj, columns, key_kind=KeyKind.PRIMARY, key=(1,), refusal=refusal
        )

    return Snapshot(
        scn=100,
        database=Database("SHOP", resetlogs=(7,)),
        tables=(
            table("APP", "ORDERS", 101),
            table("APP", "ORDER_LINES", 102),
            table("App", "Größe", 103),
            table("APP", "LOOKUP", 104, refusal="the table is index-organised"),
            table("SYS", "AUD$", 105),
        ),
    )
