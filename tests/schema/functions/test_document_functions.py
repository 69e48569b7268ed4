"""SQL/XML: documents that are equal to Oracle's, or a refusal.

SQL/JSON: the values that Oracle's documentation tells, or a refusal.
"""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from olr_pg.schema.translating import UntranslatableError
from olr_pg.schema.translation import translate_query
from tests.schema.shop_relations import relations

MADE = [
    ('XMLELEMENT("Emp", XMLATTRIBUTES(i AS "id"), b)', '<Emp id="7">x</Emp>'),
    ('XMLELEMENT("e", XMLFOREST(a AS "A", b AS "B"))', "<e><A>Oracle Corp</A><B>x</B></e>"),
    ('XMLFOREST(NULL AS "A", i AS "I")', "<I>7</I>"),
    ("EXTRACTVALUE(XMLTYPE('<x><y>a&amp;b</y></x>'), '/x/y')", "a&b"),
    ("EXTRACTVALUE(XMLTYPE('<x><y/></x>'), '/x/y')", None),
    ("EXISTSNODE(XMLTYPE('<x><y/></x>'), '/x/z')", 0),
]
XML_REFUSED = [
    "XMLTYPE('<a/>').getStringVal()",
    "XMLELEMENT(\"e\", b) || 'x'",
    'XMLELEMENT("e", d)',
    "XMLFOREST(b || a)",
    "EXTRACTVALUE(a, '/x')",
]


def _xml_rows(sample: psycopg.Connection[Any], query: str) -> list[Any]:
    text, _ = translate_query(query, relations(), "SHOP")
    with sample.transaction(force_rollback=True):
        try:
            return sample.execute(text.encode()).fetchall()
        except psycopg.errors.FeatureNotSupported as error:
            pytest.skip(f"this PostgreSQL is built without libxml: {error.diag.message_primary}")


@pytest.mark.parametrize(("text", "value"), MADE)
def test_xml(sample: psycopg.Connection[Any], text: str, value: Any) -> None:
    assert _xml_rows(sample, f"SELECT {text} x FROM t WHERE i = 7") == [(value,)]


def test_elements_of_rows(sample: psycopg.Connection[Any]) -> None:
    query = 'SELECT XMLAGG(XMLELEMENT("e", b) ORDER BY i) x FROM t WHERE b IS NOT NULL'
    assert _xml_rows(sample, query) == [("<e>a-b</e><e>x</e>",)]


def test_rows_of_an_xml_document(sample: psycopg.Connection[Any]) -> None:
    query = (
        "SELECT x.y FROM t, XMLTABLE('/r/i' PASSING"
        " XMLTYPE('<r><i><y>v</y></i><i><y/></i></r>')"
        " COLUMNS y VARCHAR2(10) PATH 'y') x WHERE t.i = 7"
    )
    assert _xml_rows(sample, query) == [("v",), (None,)]


@pytest.mark.parametrize("text", XML_REFUSED)
def test_xml_that_would_be_otherwise_is_refused(text: str) -> None:
    with pytest.raises(UntranslatableError):
        translate_query(f"SELECT {text} x FROM t", relations(), "SHOP")


IS_JSON_SINCE = 16
"""IS JSON is in PostgreSQL 16."""

DOCUMENT = """'{"PONumber":1600,"Items":[{"n":"One","p":1.5},{"n":"Two","p":"2"},{"n":7}]}'"""
READ = [
    ("JSON_VALUE('{\"a\":100}', '$.a')", "100"),
    ("JSON_VALUE('{\"a\":100}', '$.a' RETURNING NUMBER) + 1", 101),
    ("JSON_VALUE('{\"a\":{\"b\":100}}', '$.a.b')", "100"),
    ("JSON_VALUE('{\"a\":{\"b\":100}}', '$.a')", None),
    ("JSON_VALUE('[0, 1, 2, 3]', '$[0]')", "0"),
    ("JSON_VALUE('{\"a\":[5, 10, 15, 20]}', '$.a[2]')", "15"),
    ('JSON_VALUE(\'[{"a":100},{"a":200},{"a":300}]\', \'$[1].a\')', "200"),
    ("JSON_VALUE('[{\"a\":100},{\"a\":200}]', '$[*].a')", None),
    ("JSON_VALUE('{\"firstname\":\"John\"}', '$.lastname')", None),
    ("JSON_VALUE('{\"a\":\"x\"}', '$.b' DEFAULT 'No' ON EMPTY)", "No"),
    ("JSON_VALUE('a', '$.a' NULL ON ERROR)", None),
    ("JSON_VALUE(a, '$.a')", None),
    ("JSON_VALUE('{\"a\":null}', '$.a' DEFAULT 'No' ON ERROR)", None),
    ("JSON_VALUE('{\"a\":[1]}', '$.a' DEFAULT 'N o' ON ERROR)", "N o"),
    ("JSON_VALUE('{\"b\":1}', '$.a' DEFAULT 7 ON ERROR)", "7"),
    ('JSON_QUERY(\'{ "b" : {"z" : 1, "a b": [1, "x y"]} }\', \'$.b\')', '{"z":1,"a b":[1,"x y"]}'),
    ("JSON_QUERY('{\"a\":1}', '$.a')", None),
    ("JSON_QUERY('{\"a\":1}', '$.b' WITH WRAPPER)", None),
    ("JSON_QUERY('{\"a\":1}', '$.a[*]' WITH WRAPPER)", None),
    ("JSON_QUERY('[[1,2],[3,4]]', '$[1][*]' WITH ARRAY WRAPPER)", "[3,4]"),
    ('JSON_QUERY(\'{"a":{"y":2,"x":1}}\', \'$.a.*\' WITH WRAPPER)', "[2,1]"),
    ("JSON_VALUE('{\"a\":true}', '$.a')", "true"),
    ("JSON_VALUE('{\"a\":true}', '$.a' RETURNING NUMBER)", None),
    ("JSON_VALUE('{\"a\":\"12\"}', '$.a' RETURNING NUMBER)", 12),
    ("JSON_VALUE('{\"a\":\"long\"}', '$.a' RETURNING VARCHAR2(3))", None),
    ("JSON_VALUE('{\"a\":\"\"}', '$.a')", None),
    ("CASE WHEN JSON_EXISTS('{\"a\":{\"b\":null}}', '$.a.b') THEN 1 ELSE 0 END", 1),
    ("CASE WHEN JSON_EXISTS('{\"a\":1}', '$.c') THEN 1 ELSE 0 END", 0),
    ("CASE WHEN '{\"a\":1}' IS JSON THEN 1 ELSE 0 END", 1),
    ("CASE WHEN 'a' IS NOT JSON THEN 1 ELSE 0 END", 1),
]
GENERATED = [
    ("JSON_ARRAY(1, 'a\"b', NULL, n)", '[1,"a\\"b",0.5]'),
    ("JSON_ARRAY(1, NULL NULL ON NULL)", "[1,null]"),
    ("JSON_OBJECT('id' VALUE i, KEY 'name' VALUE a, 'x' VALUE NULL)",
     '{"id":7,"name":"Oracle Corp","x":null}'),
    ("JSON_OBJECT('x' VALUE NULL, 'c' VALUE c ABSENT ON NULL)", '{"c":"ab "}'),
    ("JSON_OBJECT('d' VALUE d)", '{"d":"2026-01-31T13:30:00"}'),
    ("JSON_ARRAY(JSON_OBJECT('p' VALUE .50), JSON_ARRAY(1,2,3), 100, 'California')",
     '[{"p":0.5},[1,2,3],100,"California"]'),
]  # fmt: skip
REFUSED = [
    "JSON_QUERY(a, '$.x' WITH CONDITIONAL WRAPPER)",
    "JSON_QUERY(a, '$.x[*]')",
    "JSON_QUERY(a, '$.x[2,1]' WITH WRAPPER)",
    "JSON_VALUE('{a:100}', '$.a')",
    "JSON_VALUE(a, '$.x?(@.y == 1)')",
    "JSON_VALUE(a, '$.x.size()')",
    "JSON_VALUE(a, '$.x' ERROR ON ERROR)",
    "JSON_VALUE(a, '$.x' RETURNING DATE)",
    "JSON_VALUE(i, '$.x')",
    "JSON_OBJECT(*)",
    "JSON_ARRAY(ts)",
    "JSON_ARRAYAGG(i)",
    "CASE WHEN a IS JSON WITH UNIQUE KEYS THEN 1 END",
]


def _rows(sample: psycopg.Connection[Any], query: str) -> list[Any]:
    text, _ = translate_query(query, relations(), "SHOP")
    with sample.transaction(force_rollback=True):
        return sample.execute(text.encode()).fetchall()


@pytest.mark.parametrize(("text", "value"), READ)
def test_json_that_is_read(sample: psycopg.Connection[Any], text: str, value: Any) -> None:
    if sample.info.server_version < IS_JSON_SINCE * 10_000 and " JSON THEN" in text:
        pytest.skip("IS JSON is in PostgreSQL 16: before, the trial refuses what asks it")
    assert _rows(sample, f"SELECT {text} x FROM t WHERE i = 7") == [(value,)]


@pytest.mark.parametrize(("text", "value"), GENERATED)
def test_json_that_is_made(sample: psycopg.Connection[Any], text: str, value: Any) -> None:
    assert _rows(sample, f"SELECT {text} x FROM t WHERE i = 7") == [(value,)]


@pytest.mark.parametrize("name", ["JSON_VALUE", "JSON_QUERY"])
def test_what_only_oracle_reads_as_json_is_an_error(
    sample: psycopg.Connection[Any], name: str
) -> None:
    """A NULL would be a silent loss."""
    query = f"SELECT {name}(x, '$.a') y FROM (SELECT '{{a:' || i || '}}' x FROM t)"
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        _rows(sample, query)


def test_a_step_through_an_array_is_an_error(sample: psycopg.Connection[Any]) -> None:
    """Oracle takes the members of all its elements."""
    query = "SELECT JSON_QUERY(x, '$.a') y FROM (SELECT '[{\"a\":[' || i || ']}]' x FROM t)"
    with pytest.raises(psycopg.errors.InvalidTextRepresentation, match="JSON_QUERY"):
        _rows(sample, query)


def test_json_of_groups(sample: psycopg.Connection[Any]) -> None:
    arrays = _rows(sample, "SELECT c, JSON_ARRAYAGG(a ORDER BY i) x FROM t GROUP BY c ORDER BY c")
    assert [x for _, x in arrays] == ['["Oracle Corp"]', '["  pad "]', "[]"]
    query = (
        "SELECT JSON_OBJECTAGG(KEY b VALUE i) x FROM t WHERE b IS NOT NULL GROUP BY b ORDER BY b"
    )
    assert _rows(sample, query) == [('{"a-b":-5}',), ('{"x":7}',)]


def test_rows_of_a_document(sample: psycopg.Connection[Any]) -> None:
    columns = "k FOR ORDINALITY, n VARCHAR2(3) PATH '$.n', p NUMBER PATH '$.p' DEFAULT 0 ON EMPTY"
    query = (
        f"SELECT j.* FROM t, JSON_TABLE({DOCUMENT}, '$.Items[*]' COLUMNS ({columns})) J"
        " WHERE t.i = 7 ORDER BY j.k"
    )
    rows = [(number, name, float(price)) for number, name, price in _rows(sample, query)]
    assert rows == [(1, "One", 1.5), (2, "Two", 2), (3, "7", 0)]


@pytest.mark.parametrize("text", REFUSED)
def test_what_would_be_otherwise_is_refused(text: str) -> None:
    with pytest.raises(UntranslatableError):
        translate_query(f"SELECT {text} x FROM t", relations(), "SHOP")
