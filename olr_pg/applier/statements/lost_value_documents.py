"""Assigns missing LOB values to the changes that they belong to.

They arrive as an event before their transaction, for each table, with the number of changes before
them. A value belongs to the last change before it or to a later change that lacks it; if there is
no change before it, to the first one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.lost_values import LostLob

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class LostValues(NamedTuple):
    """The missing LOB values that belong to one change.

    Attributes:
        table: ``OWNER.NAME``.
        before: values of earlier changes that are not delivered.
        after: its own, and those of later changes that are not delivered.
    """

    table: str
    before: tuple[LostLob, ...] = ()
    after: tuple[LostLob, ...] = ()

    @property
    def lobs(self) -> tuple[LostLob, ...]:
        """All of them, in their order."""
        return self.before + self.after


# --- beside what is held ---


def lost_document(marked: Iterable[tuple[int, LostValues]]) -> str | None:
    """Write values as JSON by the index of their change; None if there are none."""
    document = [
        [number, one.table, list(map(lob_document, one.before)), list(map(lob_document, one.after))]
        for number, one in marked
    ]
    return orjson.dumps(document).decode() if document else None


def read_lost(document: str | None) -> dict[int, LostValues]:
    """Read the JSON of `lost_document`.

    Raises:
        ValueError, KeyError, TypeError: it is not in this release's format.
    """
    return {
        int(number): LostValues(table, tuple(map(read_lob, before)), tuple(map(read_lob, after)))
        for number, table, before, after in orjson.loads(document or "[]")
    }


def lob_document(lob: LostLob) -> dict[str, Any]:
    """Write one value as JSON."""
    key = [[name, None if value is None else value.hex()] for name, value in lob.key]
    return {**lob._asdict(), "kind": int(lob.kind), "key": key}


def read_lob(document: Mapping[str, Any]) -> LostLob:
    """Read the JSON of `lob_document`.

    Raises:
        ValueError, KeyError, TypeError: it is not in that format.
    """
    inserts, deletes, updates = document["before"]
    return LostLob(
        document["column"],
        document["code"],
        document["row_id"],
        DmlKind(document["kind"]),
        document["delivered"],
        (inserts, deletes, updates),
        tuple(
            (name, None if value is None else bytes.fromhex(value))
            for name, value in document["key"]
        ),
    )
