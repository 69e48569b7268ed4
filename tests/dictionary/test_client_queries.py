"""A client over the network reads only lists of objects, whatever it writes around the query."""

from __future__ import annotations

import pytest

from olr_pg.dictionary.client_queries import check_relations
from olr_pg.errors import Code, OlrPgError

LIST = "SELECT owner, table_name FROM all_tables"
ALLOWED = (
    LIST,
    f"{LIST} WHERE owner = 'SHOP' AND table_name LIKE 'O%' ORDER BY 1, 2;",
    f"{LIST} WHERE (owner, table_name) IN (('A', 'B'), ('C', 'D'))",
    "SELECT OWNER, TABLE_NAME FROM SYS.DBA_TABLES",
    'SELECT "OWNER", t.table_name FROM "DBA_TABLES" t',
    "SELECT 'A' AS owner, 'B' AS table_name FROM dual UNION ALL SELECT 'C', 'D' FROM DUAL",
    f"WITH x AS ({LIST}) SELECT * FROM x",
    f"WITH x AS ({LIST}), y AS (SELECT * FROM x) SELECT * FROM y WHERE EXISTS (SELECT 1 FROM x)",
    f"SELECT * FROM (WITH x AS ({LIST}) SELECT * FROM (SELECT * FROM x UNION SELECT * FROM x))",
    "WITH x (a, b) AS (SELECT 'A', 'B' FROM dual UNION ALL SELECT a, b FROM x) SELECT a, b FROM x",
    f"WITH x (a, b) AS ({LIST}) SELECT a, b FROM x MINUS {LIST} WHERE owner = q'[SYS]'",
    f"{LIST} /* of /* it */ WHERE owner = 'it''s -- FROM sys.user$' -- FROM user$",
    "SELECT o.owner, o.object_name FROM dba_objects o JOIN dba_tables t ON t.owner = o.owner",
)
PASSWORDS = "SELECT name, spare4 FROM sys.user$"
REFUSED = (
    PASSWORDS,
    "SELECT name, spare4 FROM user$",
    "SELECT a.name, b.card FROM all_tables a, shop.cards b",
    f"{LIST} UNION ALL {PASSWORDS}",
    f"{LIST} WHERE EXISTS ({PASSWORDS})",
    "SELECT owner, (SELECT spare4 FROM sys.user$) FROM all_tables",
    f"{LIST} /* /* */ UNION {PASSWORDS} --*/",
    f"{LIST} WHERE owner = 'a\\' UNION {PASSWORDS} WHERE name = 'b'",
    f"{LIST} WHERE owner = q'!'!' UNION {PASSWORDS}",
    f"WITH x AS ({PASSWORDS}) SELECT * FROM x",
    "WITH a AS (SELECT * FROM cards), cards AS (SELECT 1 x FROM dual) SELECT x, x FROM a",
    "SELECT a, b FROM cards WHERE 1 IN (WITH cards AS (SELECT 1 x FROM dual) SELECT x FROM cards)",
    'WITH "cards" AS (SELECT 1 x FROM dual) SELECT no, pin FROM cards',
    f"WITH all_tables AS ({PASSWORDS}) SELECT * FROM all_tables",
    'SELECT owner, table_name FROM "all_tables"',
    "SELECT owner, table_name FROM shop.all_tables",
    f"{LIST} WHERE (SELECT SUBSTR(spare4, 1, 1) FROM sys.user$ WHERE name = 'SYS') = 'S'",
    "SELECT FROM WHERE",
)


@pytest.mark.parametrize("query", ALLOWED)
def test_lists_of_objects_can_be_read(query: str) -> None:
    check_relations(query)


@pytest.mark.parametrize("query", REFUSED)
def test_nothing_else_can_be_read(query: str) -> None:
    with pytest.raises(OlrPgError) as caught:
        check_relations(query)
    assert caught.value.code in (Code.TABLE_QUERY_NOT_READ_ONLY, Code.TABLE_QUERY_INVALID)
