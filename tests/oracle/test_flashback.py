"""Tables as of an SCN, as SQL."""

from __future__ import annotations

from sqlalchemy import Column, Integer, MetaData, Table, select
from sqlalchemy.dialects import oracle

from olr_pg.oracle.flashback import as_of

TABLE = Table("OBJ$", MetaData(), Column("OBJ#", Integer), schema="SYS")


def test_every_table_has_the_scn_as_a_bind() -> None:
    first, second = as_of(TABLE, 5, "a"), as_of(TABLE, 6, "b")
    query = select(first.c["OBJ#"]).select_from(
        first.join(second, first.c["OBJ#"] == second.c["OBJ#"])
    )
    compiled = query.compile(dialect=oracle.dialect())  # type: ignore[no-untyped-call]
    text = " ".join(str(compiled).split())
    assert text.count("AS OF SCN") == 2
    assert '"OBJ$" AS OF SCN' in text
    assert sorted(compiled.params.values()) == [5, 6]
