"""Converts the row changes of a table to Arrow record batches.

A batch has one row per row change, in delivery order. Its columns contain the kind of the change,
its position in the redo, and the row before and after the change (the images). An image is a struct
of the table's columns, with the types of `arrow_types`. If a change does not have an image, the
image is null. Within an image, a column is null if its value is NULL, and also if the redo does not
contain it. If you must distinguish the two cases, read the JSON Lines instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from olr_pg.dictionary.lob_delivery import delivered_charset_id, delivered_type
from olr_pg.rendering.arrow_images import ArrowImages
from olr_pg.rendering.arrow_types import arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from olr_pg.dictionary.model import Column, Database
    from olr_pg.rendering.arrow_changes import ChangeFacts
    from olr_pg.transactions.change_columns import ChangeColumns
    from olr_pg.wire.column_directory import ColumnDirectory

SESSION_FIELDS: Final = ("thread", "login_user", "os_user", "machine", "program")
"""The fields that describe the database session that made a change. They are null if the session is
unknown.
"""


def delivered_column(column: Column) -> Column:
    """Return a column of the dictionary, with its type replaced by the type in which its values are
    delivered.
    """
    return replace(
        column, type_code=delivered_type(column), charset_id=delivered_charset_id(column)
    )


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """Return the Arrow schema for changes of a table with these columns. The columns must have
    their delivered types (`delivered_column`).
    """
    image = pa.struct([pa.field(column.name, arrow_type(column)) for column in columns])
    fields: list[pa.Field[Any]] = [
        pa.field("op", pa.string(), nullable=False),
        pa.field("commit_scn", pa.int64(), nullable=False),
        pa.field("commit_time", pa.timestamp("s"), nullable=False),
        pa.field("scn", pa.int64(), nullable=False),
        pa.field("xid", pa.string(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("rowid", pa.string(), nullable=False),
        pa.field("thread", pa.int32()),
        pa.field("login_user", pa.string()),
        pa.field("os_user", pa.string()),
        pa.field("machine", pa.string()),
        pa.field("program", pa.string()),
        pa.field("before", image),
        pa.field("after", image),
    ]
    return pa.schema(fields)


class TableBatches:
    """Converts changes of one table to record batches.

    Args:
        columns: the table's columns, as they are delivered (`delivered_column`).
        database: the database from which the values come.
        directory: the numbers by which the changes refer to tables and columns.
    """

    def __init__(
        self, owner: str, name: str, columns: Sequence[Column], database: Database,
        directory: ColumnDirectory,
    ) -> None:  # fmt: skip
        self.owner = owner
        self.name = name
        self.schema = schema_of(columns)
        image = self.schema.field("after").type
        self._images = [
            ArrowImages(image, is_after, database, directory) for is_after in (False, True)
        ]

    def batch(
        self,
        changes: ChangeColumns,
        facts: ChangeFacts,
        elements: npt.NDArray[np.int64],
        session_of: Callable[[int], Mapping[str, Any]],
    ) -> pa.RecordBatch:
        """Return some changes of the table as a record batch.

        Values of columns that are not in `columns` are left out.
        """
        sessions = facts.sessions(elements, session_of, SESSION_FIELDS)
        images = [one.array(changes, elements) for one in self._images]
        arrays = [facts.array(name, elements) for name in self.schema.names[:7]]
        return pa.RecordBatch.from_arrays(
            [*arrays, *sessions.values(), *images], schema=self.schema
        )
