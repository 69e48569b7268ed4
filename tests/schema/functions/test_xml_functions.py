"""SQL/XML: documents that are equal to Oracle's, or a refusal."""

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
REFUSED = [
    "XMLTYPE('<a/>').getStringVal()",
    "XMLELEMENT(\"e\", b) || 'x'",
    'XMLELEMENT("e", d)',
    "XMLFOREST(b || a)",
    "EXTRACTVALUE(a, '/x')",
]


def _rows(sample: psycopg.Connection[Any], query: str) -> list[Any]:
    text, _ = translate_query(query, relations(), "SHOP")
    with sample.transaction(force_rollback=True):
        try:
            return sample.execute(text.encode()).fetchall()
        except psycopg.errors.FeatureNotSupported as error:
            pytest.skip(f"this PostgreSQL is built without libxml: {error.diag.message_primary}")


@pytest.mark.parametrize(("text", "value"), MADE)
def test_xml(sample: psycopg.Connection[Any], text: str, value: Any) -> None:
    assert _rows(sample, f"SELECT {text} x FROM t WHERE i = 7") == [(value,)]


def test_elements_of_rows(sample: psycopg.Connection[Any]) -> None:
    query = 'SELECT XMLAGG(XMLELEMENT("e", b) ORDER BY i) x FROM t WHERE b IS NOT NULL'
    assert _rows(sample, query) == [("<e>a-b</e><e>x</e>",)]


def test_rows_of_a_document(sample: psycopg.Connection[Any]) -> None:
    query = (
        "SELECT x.y FROM t, XMLTABLE('/r/i' PASSING"
        " XMLTYPE('<r><i><y>v</y></i><i><y/></i></r>')"
        " COLUMNS y VARCHAR2(10) PATH 'y') x WHERE t.i = 7"
    )
    assert _rows(sample, query) == [("v",), (None,)]


@pytest.mark.parametrize("text", REFUSED)
def test_what_would_be_otherwise_is_refused(text: str) -> None:
    with pytest.raises(UntranslatableError):
        translate_query(f"SELECT {text} x FROM t", relations(), "SHOP")
