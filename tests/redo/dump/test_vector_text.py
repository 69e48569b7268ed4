"""Vectors as text: each known operation by its members, everything else as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.redo.dump.vector_text import vector_lines
from olr_pg.simulator.fields.vector_fields import DatabaseSession, session_fields
from tests.lobs.lob_redo import LobRedo
from tests.redo.hand_made import log_of, records

if TYPE_CHECKING:
    from pathlib import Path


def texts(redo: LobRedo, folder: Path) -> list[str]:
    layout = log_of(redo, folder).header.layout
    return [
        "\n".join(vector_lines(vector, layout))
        for record in records(redo, folder)
        for vector in record.vectors
    ]


def test_a_transaction_says_its_members(tmp_path: Path) -> None:
    redo = LobRedo(segment=9)
    redo.begin()
    redo.direct_page(2, 1, 0x01800200, b"page")
    redo.operation(1, 2, 1, 5)
    redo.end(rollback=True)
    begin, page, operation, end = texts(redo, tmp_path)
    assert begin.startswith("ktudh redo (usn 9): ")
    assert f"sqn: 0x{redo.sequence:08x}" in begin
    assert "KDLI fpload" in page
    assert "70 61 67 65" in page
    assert operation.startswith("LLB kind: 1")
    assert end.endswith("rolled back\ncommit time (Unix): 0")


def test_a_session_says_who_it_is(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.emit(
        redo.vector((5, 19), session_fields(redo.redo, DatabaseSession(3, 4, "APP"), full=True))
    )
    (text,) = texts(redo, tmp_path)
    assert "session number: 3  serial number: 4" in text
    assert "login username: APP" in text


@pytest.mark.parametrize("op", [(4, 1), (13, 2), (99, 9)])
def test_an_unknown_vector_is_bytes(tmp_path: Path, op: tuple[int, int]) -> None:
    redo = LobRedo()
    redo.emit(redo.vector(op, [b"\x0a\x0b", b""]))
    assert texts(redo, tmp_path) == ["field 1: [  2] 0a 0b\nfield 2: [  0]"]
