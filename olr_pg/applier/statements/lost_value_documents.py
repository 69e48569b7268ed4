"""Assigns missing LOB values to the changes that they belong to.

The missing values of a transaction and a table arrive as one event before the transaction. The
event contains, for each value, its position: the number of changes of the table before it. The
value is attached to the last of these changes, or to the first change if there is none before it.
A missing value can also belong to a change that is not delivered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.lost_values import LostLob

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class LostValues(NamedTuple):
    """The missing LOB values that are attached to one change.

    Attributes:
        table: ``OWNER.NAME``.
        before: missing values of earlier changes that are not delivered.
        after: missing values of this change, and of later changes that are not delivered.
    """

    table: str
    before: tuple[LostLob, ...] = ()
    after: tuple[LostLob, ...] = ()

    @property
    def lobs(self) -> tuple[LostLob, ...]:
        """All missing values, in their order."""
        return self.before + self.after


# --- as JSON, stored with held changes ---


def lost_document(marked: Iterable[tuple[int, LostValues]]) -> str | None:
    """Return missing values as JSON, with the indexes of their changes; None if there are none."""
    document = [
        [number, one.table, list(map(lob_document, one.before)), list(map(lob_document, one.after))]
        for number, one in marked
    ]
    return orjson.dumps(document).decode() if document else None


def read_lost(document: str | None) -> dict[int, LostValues]:
    """Return the missing values in a document of `lost_document`, by the indexes of their changes.

    Raises:
        ValueError, KeyError, TypeError: the document is not in this release's format.
    """
    return {
        int(number): LostValues(table, tuple(map(read_lob, before)), tuple(map(read_lob, after)))
        for number, table, before, after in orjson.loads(document or "[]")
    }


def lob_document(lob: LostLob) -> dict[str, Any]:
    """Return one missing value as data for JSON."""
    key = [[name, None if value is None else value.hex()] for name, value in lob.key]
    return {**lob._asdict(), "kind": int(lob.kind), "key": key}


def read_lob(document: Mapping[str, Any]) -> LostLob:
    """Return the missing value in a document of `lob_document`.

    Raises:
        ValueError, KeyError, TypeError: the document is not in that format.
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
