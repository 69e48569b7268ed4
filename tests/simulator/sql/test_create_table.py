"""CREATE TABLE is read word by word; a word without a meaning is named."""

from __future__ import annotations

import pytest

from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.create_table import Words, read_table

TEXT = """(id NUMBER(6) CONSTRAINT t_pk PRIMARY KEY, "Mixed" VARCHAR2(10 CHAR) DEFAULT NVL('a', 'b')
  NOT NULL CHECK ("Mixed" <> ')'), c CLOB, p NUMBER(4) REFERENCES p (id) ON DELETE SET NULL,
  CONSTRAINT u UNIQUE (p, id), SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS)
  TABLESPACE users PCTFREE 20 PARTITION BY HASH (p) PARTITIONS 3
  LOB (c) STORE AS BASICFILE (DISABLE STORAGE IN ROW CHUNK 8192)"""


def test_a_table_of_everything() -> None:
    found = read_table(Words(TEXT))
    assert [one.name for one in found.columns] == ["ID", "Mixed", "C", "P"]
    assert found.columns[1].default == "NVL('a', 'b')"
    assert [one.not_null for one in found.columns] == [False, True, False, False]
    storage = found.columns[2].storage
    assert storage is not None
    assert (storage.securefile, storage.in_row) == (False, False)
    assert [(one.kind, one.name) for one in found.constraints] == [
        ("PRIMARY", "T_PK"), ("CHECK", ""), ("FOREIGN", ""), ("UNIQUE", "U"),
    ]  # fmt: skip
    assert found.constraints[1].condition == "\"Mixed\" <> ')'"
    assert found.constraints[2].on_delete == "SET NULL"
    assert (found.partitions, found.partition_column) == (3, "P")
    assert found.logging is Logging.PRIMARY_KEY


def test_a_table_as_a_query() -> None:
    assert read_table(Words("ROWDEPENDENCIES AS SELECT a FROM b")).query == "SELECT a FROM b"


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("(id NUMBER) CLUSTER c (id)", 922, "CLUSTER"),
        ("(id NUMBER GENERATED ALWAYS AS (1) VIRTUAL)", 922, "AS"),
        ("(id NUMBER, id DATE)", 957, "duplicate"),
        ("(id NUMBER) PARTITION BY SYSTEM", 922, "PARTITION"),
        ("(id", 902, "datatype"),
        ("(id NUMBER) LOB (id) STORE AS SECUREFILE", 22853, "LOB"),
    ],
)
def test_what_is_unknown_is_named(text: str, code: int, told: str) -> None:
    with pytest.raises(OraError, match=told) as caught:
        read_table(Words(text))
    assert caught.value.code == code
