"""After `olr-pg errors skip`, the later changes of the table must arrive: otherwise the table looks
as if it were replicated, and nobody notices the missing rows. So an error after which no change is
decoded cannot be skipped. The list of errors that can stop a table is read from the code.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import olr_pg
from olr_pg.applier.stopped.error_table import skip_error, skip_transaction
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.dictionary.evolution import ENDING
from olr_pg.errors import Code, OlrPgError
from tests.applier.stopped.sys_row_ddl import UPDATE, Source, T, a_row, altered
from tests.applier.stopped.test_ddl_kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.transactions.schema_event import SchemaEvent

ROOMS: Final = (
    *("dictionary/evolution.py", "decoding/*.py", "redo/*.py", "transactions/**/*.py"),
    *("datatypes/*.py", "applier/batches/*.py", "applier/statements/*.py", "applier/stopped/*.py"),
    *("applier/target/*.py", "postgres/sqlstates.py"),
)
"""Where a reason can arise for which a table stops."""

END_THE_RUN: Final = {
    *range(1000, 2000), *range(2002, 2010), 2081, 2082, 3070, 3076, *range(7000, 8000),
    5003, 5004, 5010, 5013, 5014, 5015, 5016, 5020, 5021, 5022, 5023, 5024, 5025, 5026,
    5027, 5029, 5031, 5032, 5033, 5044, 5045, 5140, 5141, 5145, 9001,
}  # fmt: skip
"""The run or the command ends, and the next start reads the same changes again."""

ONLY_REPORT: Final = {
    *(2052, 2058, 2121, 2142, 2143, 2144, 2145, 2146, 3080, 3081, 5130, 5142, 5143),
    *(2056, 2059),
}
"""A warning, or the answer of a command."""

OF_ONE_CHANGE: Final = {
    # The redo of a change is not decodable. The next change is decoded by itself, and stops the
    # table again if it is not decodable either.
    *(2011, 2015, 2016, 2017, 2018, 2060, 2061, 2062, 2124, 2140, 2141, 2160, 2161),
    # A value or a LOB of a change.
    *(2050, 2051, 2053, 2054, 2055, 2057, 2120, 2122, 2123, 5018, 5155),
    # The target refuses a change, or its table does not fit. Later changes are delivered, and held
    # as long as the reason lasts.
    *(5005, 5006, 5007, 5008, 5009, 5028, 5040, 5041, 5042, 5043, 5046, 5098, 5147),
    # PostgreSQL refuses a statement for a reason that lasts (`Worker._given_up`).
    *range(5090, 5098),
    # The appliance ran without the table, or held changes were deleted. It is delivered again.
    *(5030, 5148),
    # DDL whose effect on the rows is unknown or not wanted. The definition after it is known.
    *(3071, 3072, 3073, 3074, 5070),
}
"""After a skip, the later changes are delivered."""


def named_codes() -> Iterator[Code]:
    root = Path(olr_pg.__file__).parent
    for room in ROOMS:
        files = list(root.glob(room))
        assert files, room
        for file in files:
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                match node:
                    case ast.Attribute(ast.Name("Code"), name) if name in Code.__members__:
                        yield Code[name]


def test_each_error_of_the_code_is_decided_upon() -> None:
    decided = END_THE_RUN | ONLY_REPORT | OF_ONE_CHANGE | ENDING
    assert sorted({int(code) for code in named_codes()} - decided) == []
    assert not ENDING & (END_THE_RUN | ONLY_REPORT | OF_ONE_CHANGE)


def test_only_an_error_with_later_changes_can_be_skipped(postgres_database: str) -> None:
    with connect(postgres_database) as connection:
        ensure_ledger(connection)
        for code in sorted(OF_ONE_CHANGE | ENDING):
            for skip in (skip_error, skip_transaction):
                number = stopped_with(connection, code)
                if code not in ENDING:
                    assert skip(connection, "olr_pg", number).code == code
                    continue
                with pytest.raises(OlrPgError, match="are not delivered") as refused:
                    skip(connection, "olr_pg", number)
                assert refused.value.code == Code.ERROR_NOT_SKIPPABLE
                for step in ("olr-pg initial-load --anew", "SHOP.T"):
                    assert step in f"{refused.value.action} {refused.value}"


def stopped_with(connection: Any, code: int) -> int:
    row = connection.execute(
        "INSERT INTO olr_pg.error (subscription, source_table, target_table, commit_scn, xid,"
        " position, scn, operation, code, message, resolution) VALUES ('olr_pg', 'SHOP.T',"
        " 'shop.t', nextval('olr_pg.error_id_seq'), '1.1.1', 0, 7, 'ddl', %s, 'x', 'stopped')"
        " RETURNING id",
        (code,),
    ).fetchone()
    return int(row[0])


IN_A_CLUSTER: Final = ((UPDATE, a_row("TAB$", "t1", clu_cols=1)),)
OUT_OF_IT: Final = ((UPDATE, a_row("TAB$", "t1", clu_cols=0)),)


def test_a_table_that_ends_has_an_error_that_says_so_and_no_other_has() -> None:
    statements = {name: (kind.text, kind.made) for name, kind in KINDS.items()}
    statements["a cluster"] = "MOVE", IN_A_CLUSTER
    statements["a rename"] = "RENAME TO u", ((UPDATE, a_row("OBJ$", "o1", name="U")),)
    statements["another type"] = "MODIFY (name DATE)", (altered("c2", type=12),)
    stopped = set()
    for name, (text, made) in statements.items():
        source = Source()
        event = source.ddl(text, made)
        if event is not None and event.evolution.error is not None:
            code = event.evolution.error.code
            stopped.add(code)
            assert (code in ENDING) != source.is_decoded(T), name
    assert {Code.TABLE_NOT_REPLICABLE_NOW, Code.TABLE_GONE, Code.COLUMNS_CHANGED} <= stopped


def test_a_changed_character_set_of_the_source_stops_each_table_with_text() -> None:
    source = Source()
    text, converted = "ALTER DATABASE CHARACTER SET INTERNAL_USE", (altered("c2", charset_id=178),)
    (event,) = source.all(text, converted)
    error = event.evolution.error
    assert error is not None
    assert error.code == Code.TABLE_NOT_REPLICABLE_NOW
    assert "NAME has the character set WE8MSWIN1252" in error.detail
    assert "has AL32UTF8" in error.detail
    source.all("RENAME COLUMN n TO m", (altered("c3", name="M"),))
    assert not source.is_decoded(T)
    # A database whose columns never had the set that it declares.
    other = Source(charset="WE8ISO8859P1")
    assert other.all(text, converted) != []
    other.all("RENAME COLUMN n TO m", (altered("c3", name="M"),))
    assert other.is_decoded(T)


def test_a_refused_table_is_decoded_again_only_when_nothing_refuses_it() -> None:
    source = Source()
    assert codes(source.all("MOVE", IN_A_CLUSTER)) == [Code.TABLE_NOT_REPLICABLE_NOW]
    source.all("RENAME COLUMN n TO m", (altered("c3", name="M"),))
    assert not source.is_decoded(T)
    source.all("MOVE", OUT_OF_IT)
    assert source.is_decoded(T)


def test_a_table_that_is_renamed_while_it_is_refused_stops_under_its_new_name() -> None:
    source = Source(later=[(T, "U")])
    source.all("MOVE", IN_A_CLUSTER)
    renamed = source.all("RENAME TO u", ((UPDATE, a_row("OBJ$", "o1", name="U")),))
    assert [event.table for event in renamed] == ["SHOP.T", "SHOP.U"]
    assert codes(renamed) == [None, Code.TABLE_NOT_REPLICABLE_NOW]


def test_where_nobody_is_told_the_delivery_ends_at_the_ddl() -> None:
    """An external client would not notice that the changes of one table are missing."""
    source = Source()
    follower = DictionaryFollower(source.snapshot, ends_delivery=True)
    follower.subscribe([source.definition])
    follower.apply([source.transaction("RENAME COLUMN n TO m", (altered("c3", name="M"),))])
    assert follower.ended() == []
    follower.apply([source.transaction("MOVE", IN_A_CLUSTER)])
    assert follower.end is not None
    assert codes([follower.end]) == [Code.TABLE_NOT_REPLICABLE_NOW]
    assert [error.code for error in follower.ended()] == [Code.TABLE_NOT_REPLICABLE_NOW]


def codes(events: list[SchemaEvent]) -> list[int | None]:
    errors = [event.evolution.error for event in events]
    return [None if error is None else error.code for error in errors]
