"""Values that have nothing left for the target, and are no NULL: they stop their table alone.

PostgreSQL calls a jsonb or a uuid of no bytes a violation of the protocol: an error that looks like
that of a lost connection, which everything would wait for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.errors import OlrPgError
from olr_pg.wire.elements import Chunk, ChunkFlags, ColumnValue
from tests.applier.conftest import insert

if TYPE_CHECKING:
    from tests.applier.conftest import Change, Replication

LAST = ChunkFlags.LAST_OF_COLUMN | ChunkFlags.LAST_OF_ROW
NO_JSON = "invalid input syntax for type json"
CLOB = ColumnValue("V", 112, charset_id=2000, charset_form=1, chunked=True)
BLOB = ColumnValue("V", 113, chunked=True)
BLANK = ColumnValue("V", 96, charset_id=873, charset_form=1, value=b"     ")
NUL = ColumnValue("V", 1, charset_id=873, charset_form=1, value=b"\0")


def of_nothing(column: ColumnValue) -> list[Change]:
    """The insert of the row 1 with that value."""
    row = insert({"ID": 1, "V": column})
    if not column.chunked:
        return [row]
    return [row, Chunk(1, 0, 0, 0, "V", column.type_code, LAST, b"")]


@pytest.mark.parametrize("copy_rows", [1, 2_000])
@pytest.mark.parametrize(
    ("column", "target", "said"),
    [
        (CLOB, "jsonb", NO_JSON),
        (CLOB, "json", NO_JSON),
        (CLOB, "uuid", "the text is not a uuid"),
        (BLOB, "uuid", "BLOB to uuid"),
        (BLANK, "jsonb", NO_JSON),
        (BLANK, "uuid", "the text is not a uuid"),
        (NUL, "jsonb", NO_JSON),
        (NUL, "uuid", "the text is not a uuid"),
    ],
)
def test_a_target_that_cannot_be_empty_refuses_the_value(
    replication: Replication, column: ColumnValue, target: str, said: str, copy_rows: int
) -> None:
    replication.execute(f"ALTER TABLE s.t ALTER v TYPE {target} USING NULL")
    replication.execute("CREATE TABLE s.u (id bigint PRIMARY KEY)")
    replication.transaction(*of_nothing(column))
    replication.transaction(insert({"ID": 7}, "U"))
    with pytest.raises(OlrPgError) as caught:
        replication.apply(copy_rows=copy_rows)
    assert caught.value.code == 5010
    # Its own words may have values of the row: they are in the error table, and nowhere else.
    ((message,),) = replication.rows("SELECT message FROM olr_pg.error")
    assert said in message
    assert message not in caught.value.detail
    assert replication.rows("SELECT * FROM s.t") == []
    assert replication.rows("SELECT id FROM s.u") == [(7,)]


@pytest.mark.parametrize("copy_rows", [1, 2_000])
@pytest.mark.parametrize(
    ("column", "target", "value"),
    [
        (CLOB, "text", ""),
        (CLOB, "bytea", b""),
        (BLOB, "text", ""),
        (BLOB, "bytea", b""),
        (BLANK, "text", ""),
        (NUL, "text", ""),
        (NUL, "bytea", b"\0"),
    ],
)
def test_a_target_that_can_be_empty_is(
    replication: Replication, column: ColumnValue, target: str, value: object, copy_rows: int
) -> None:
    replication.execute(f"ALTER TABLE s.t ALTER v TYPE {target} USING NULL")
    replication.transaction(*of_nothing(column))
    replication.apply(copy_rows=copy_rows)
    assert replication.rows("SELECT v FROM s.t") == [(value,)]
