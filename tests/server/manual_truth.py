"""What a client of the manual has received, compared with a simulation's truth, line by line."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from tests.server.manual_client import (
    BEGIN,
    CHUNK,
    COMMIT,
    DELETE,
    INSERT,
    LAST_OF_COLUMN,
    LAST_OF_ROW,
    UPDATE,
    Element,
    ManualClient,
    Value,
)
from tests.server.manual_values import is_same

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_OPERATIONS: Final = {
    BEGIN: "begin",
    COMMIT: "commit",
    INSERT: "insert",
    UPDATE: "update",
    DELETE: "delete",
}

Truth = dict[str, Any]


def read_truth(path: Path) -> list[list[Truth]]:
    """The lines of each transaction, in the order of delivery."""
    transactions: list[list[Truth]] = []
    for line in path.read_text("utf-8").splitlines():
        found = json.loads(line, parse_float=Decimal, parse_int=Decimal)
        if found["op"] == "begin":
            transactions.append([])
        transactions[-1].append(found)
    return transactions


def receive_transaction(client: ManualClient, confirmed: int) -> list[Element]:
    """The elements of one transaction, from its Begin to its Commit."""
    elements = [client.next(confirmed)]
    while elements[-1].code != COMMIT:
        elements.append(client.next(confirmed))
    return elements


def check_transaction(elements: Sequence[Element], truth: Sequence[Truth]) -> None:
    """Whether the elements are those of the truth, in its order, with its values."""
    rows = [element for element in elements if element.code != CHUNK]
    assert [_OPERATIONS[row.code] for row in rows] == [line["op"] for line in truth]
    chunks = chunks_by_row(elements)
    for number, (row, line) in enumerate(zip(rows, truth, strict=True)):
        usn, slot, sequence = map(int, line["xid"].split("."))
        head = line["scn"], line["commit_scn"], usn << 48 | slot << 32 | sequence
        assert (row.scn, row.commit_scn, row.xid) == head
        if row.code in (BEGIN, COMMIT):
            continue
        assert (f"{row.schema}.{row.table}", row.rowid) == (line["table"], line["rowid"])
        whole = chunks.get(number, {})
        check_image(row.before, line.get("before", {}), {}, line)
        check_image(row.after, line.get("after", {}), whole, line)
        assert [value.name for value in row.after if value.chunked] == list(whole)


def check_image(
    values: Sequence[Value], truth: Truth, chunks: dict[str, tuple[int, bytes]], line: Truth
) -> None:
    """Whether the columns of an image have the truth's values."""
    assert [value.name for value in values] == list(truth), line
    for value in values:
        kind, data = value.type, value.data
        if value.chunked:
            kind, data = chunks[value.name]
        expected = truth[value.name]
        if data is None:
            assert expected is None, (value, line)
        else:
            assert is_same(kind, value.charset, data, expected), (value, expected, line)


def chunks_by_row(elements: Sequence[Element]) -> dict[int, dict[str, tuple[int, bytes]]]:
    """(ColumnType, value) by column, by number of the row change among what is no Chunk.

    The rules for Chunks hold: they stand behind their row, column after column, and the flags mark
    the last of a column and the last of the row.
    """
    found: dict[int, dict[str, tuple[int, bytes]]] = {}
    number, pending = -1, list[str]()
    for element in elements:
        if element.code != CHUNK:
            assert not pending, "a row change whose last Chunk has not come"
            number += 1
            pending = [value.name for value in element.after if value.chunked]
            continue
        assert pending, "a Chunk that no row change announced"
        assert element.column == pending[0]
        of_row = found.setdefault(number, {})
        kind, data = of_row.get(element.column, (element.type, b""))
        assert kind == element.type
        of_row[element.column] = kind, data + element.data
        if element.flags & LAST_OF_COLUMN:
            pending.pop(0)
        assert bool(element.flags & LAST_OF_ROW) == (not pending)
    return found
