"""A column of the query that reads rows of a table."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa


class QueryField(NamedTuple):
    """A column of the query.

    Attributes:
        name: of the table's column.
        expression: that gives its values.
        kind: what the driver makes of them.
        is_lob: they are read by `lob_row_reading`.
    """

    name: str
    expression: str
    kind: pa.DataType
    is_lob: bool = False
