"""Packages become schemas with their routines in them; what has no like is named.

What each does follows from Oracle's documentation (PL/SQL Language Reference, “PL/SQL Packages”).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.assessment.assessor import assess
from olr_pg.assessment.report import Carrier
from olr_pg.dictionary.inventory import Inventory, SchemaObject, UnitSource
from olr_pg.dictionary.model import Database, Snapshot
from olr_pg.schema.conversion import convert
from olr_pg.schema.plsql.packages import split_package
from olr_pg.schema.relations import Relations
from olr_pg.schema.trial import tried
from tests.schema.plsql.test_routines import TABLES
from tests.schema.shop_relations import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from olr_pg.schema.statement import Statement

SPECIFICATION = """PACKAGE pay AUTHID DEFINER IS
  c_rate CONSTANT NUMBER := 1.5;
  FUNCTION raised(p_id NUMBER, p_times NUMBER DEFAULT 1) RETURN NUMBER;
  PROCEDURE give(p_id NUMBER, p_left OUT NUMBER);
  PROCEDURE counted;
  FUNCTION twice(p NUMBER) RETURN NUMBER;
END pay;"""
BODY = """PACKAGE BODY pay AS
  c_name CONSTANT VARCHAR2(10) := 'it''s';
  g_calls PLS_INTEGER := 0;
  TYPE t_list IS TABLE OF NUMBER;

  FUNCTION own(p NUMBER) RETURN NUMBER; -- further down

  FUNCTION raised(p_id NUMBER, p_times NUMBER DEFAULT 1) RETURN NUMBER IS
    v NUMBER;
    FUNCTION inner(p NUMBER) RETURN NUMBER IS BEGIN RETURN p; END inner;
  BEGIN
    RETURN inner(1);
  END raised;

  PROCEDURE give(p_id NUMBER, p_left OUT NUMBER) IS
  BEGIN
    UPDATE accounts SET balance = balance * c_rate, name = c_name WHERE id = p_id;
    CASE WHEN p_id = 1 THEN p_left := pay.own(p_id) + own(p_id);
    ELSE IF p_id = 2 THEN NULL; END IF; END CASE;
  END;

  PROCEDURE counted IS BEGIN g_calls := g_calls + 1; END;

  FUNCTION own(p NUMBER) RETURN NUMBER IS v NUMBER; BEGIN
    SELECT balance INTO v FROM accounts WHERE id = p; RETURN v; END;

  FUNCTION twice(p NUMBER) RETURN NUMBER IS BEGIN RETURN outside(p) * 2; END;
  FUNCTION unmade(p NUMBER) RETURN NUMBER IS BEGIN RETURN raised(p); END;
  PROCEDURE named IS n NUMBER; BEGIN give(p_left => n, p_id => 1); END;
BEGIN
  g_calls := 1;
END pay;"""
OUTSIDE = "FUNCTION outside(p NUMBER) RETURN NUMBER IS BEGIN RETURN pay.own(p) + 1; END;"


def _unit(kind: str, name: str, text: str) -> UnitSource:
    return UnitSource(owner="BANK", name=name, kind=kind, text=text)


SOURCES = (
    _unit("PACKAGE", "PAY", SPECIFICATION),
    _unit("PACKAGE BODY", "PAY", BODY),
    _unit("FUNCTION", "OUTSIDE", OUTSIDE),
)


def _inventory(*sources: UnitSource) -> Inventory:
    objects = tuple(SchemaObject(owner="BANK", name=one.name, kind=one.kind) for one in sources)
    return Inventory(owners=("BANK",), tables=TABLES, sources=sources, objects=objects)


@pytest.fixture(scope="module")
def made() -> list[Statement]:
    return convert(_inventory(*SOURCES), SETTINGS)


def _reasons(statements: list[Statement]) -> Mapping[str, str]:
    names = ("BANK.PAY", "BANK.OUTSIDE")
    return {one.name: one.reason for one in statements if one.name.startswith(names)}


def test_the_text_is_split_into_declarations_and_routines() -> None:
    parts = split_package(BODY)
    assert [text.split()[0] for text in parts.declarations] == ["c_name", "g_calls", "TYPE"]
    assert [text.split("(")[0].split()[1].rstrip(";") for text in parts.routines] == [
        *("own", "raised", "give", "counted", "own", "twice", "unmade", "named"),
    ]
    assert parts.is_initialised
    assert all(text.endswith(";") for text in parts.routines)


def test_what_has_no_like_is_named(made: list[Statement]) -> None:
    prefix = "the PL/SQL is not translated: "
    reasons = {name: text.removeprefix(prefix) for name, text in _reasons(made).items()}
    assert reasons == {
        "BANK.PAY": "the initialisation statements of the package: run them at the beginning of"
        " each session",
        "BANK.PAY.RAISED": "the code declares a nested function: make it a routine of its own",
        "BANK.PAY.GIVE": "",
        "BANK.PAY.COUNTED": "the routine uses the variable G_CALLS of its package: use a setting"
        " (set_config) or a table",
        "BANK.PAY.OWN": "",
        "BANK.PAY.TWICE": "",
        "BANK.PAY.UNMADE": "the code calls BANK.PAY.RAISED, which is not created",
        "BANK.PAY.NAMED": "",
        "BANK.OUTSIDE": "",
    }


def test_its_routines_work(made: list[Statement], postgres: str) -> None:
    with psycopg.connect(postgres) as target:
        for one in made:
            if one.runs:
                target.execute(one.sql.encode())
        target.execute("INSERT INTO bank.accounts (id, balance) VALUES (1, 10), (2, 4)")
        assert target.execute("CALL pay.give(1, NULL)").fetchall() == [(30,)]
        assert target.execute("CALL pay.give(2, NULL)").fetchall() == [(None,)]
        target.execute("CALL pay.named()")
        rows = target.execute("SELECT id, balance, name FROM bank.accounts ORDER BY id").fetchall()
        assert rows == [(1, 22.5, "it's"), (2, 6, "it's")]
        assert target.execute("SELECT pay.twice(2)").fetchall() == [(14,)]
        target.rollback()


def test_the_trial_takes_it(made: list[Statement], postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as target:
        assert _reasons(tried(target, made)) == _reasons(made)


def test_its_classes_add_up(made: list[Statement]) -> None:
    inventory = _inventory(*SOURCES)
    empty = Snapshot(scn=1, database=Database("BANK"), tables=())
    report = assess(inventory, empty, frozenset(), Relations(inventory, SETTINGS), made)
    found = {(one.kind, one.name): one for one in report.items if one.kind in (
        "PACKAGE", "PACKAGE BODY", "FUNCTION")}  # fmt: skip
    carriers = {kind: one.carrier for (kind, _), one in found.items()}
    assert carriers == {
        "PACKAGE": Carrier.CONVERTED, "PACKAGE BODY": Carrier.BY_HAND,
        "FUNCTION": Carrier.CONVERTED,
    }  # fmt: skip
    assert "translated: 4 of its 8 parts" in found["PACKAGE BODY", "BANK.PAY"].reasons[0]


REFUSED = {
    "PROCEDURE p IS BEGIN pay.give(1); END;": "the code calls BANK.PAY.GIVE with arguments that"
    " do not match",
    "PROCEDURE p IS BEGIN pay.give(1, 2); END;": "a name is expected",
    "FUNCTION p RETURN NUMBER IS BEGIN RETURN pay.twice(); END;": "with 0 arguments",
    "PROCEDURE p IS BEGIN UPDATE accounts SET name = 'x'; pay.named; IF SQL%ROWCOUNT = 1 THEN NULL;"
    " END IF; END;": "in a block with calls",
    "PROCEDURE p IS BEGIN pay.named; EXCEPTION WHEN OTHERS THEN NULL; END;": "an exception"
    " handler of a block that changes or locks rows, or calls routines",
    "PROCEDURE p IS BEGIN pay.nothing; END;": "the code calls PAY.NOTHING",
}


@pytest.mark.parametrize("text", REFUSED)
def test_calls_that_are_otherwise_are_named(text: str) -> None:
    unit = _unit(text.split()[0], "P", text)
    (one,) = (one for one in convert(_inventory(*SOURCES, unit), SETTINGS) if one.name == "BANK.P")
    assert REFUSED[text] in one.reason


def test_overloaded_routines_and_a_taken_schema_are_named() -> None:
    routine = "PROCEDURE p(a NUMBER) IS BEGIN NULL; END;"
    text = f"PACKAGE BODY q IS {routine} {routine.replace('NUMBER', 'DATE')} END;"
    units = (_unit("PACKAGE", "Q", "PACKAGE q IS END;"), _unit("PACKAGE BODY", "Q", text))
    reasons = [one.reason for one in convert(_inventory(*units), SETTINGS) if "BANK.Q" in one.name]
    assert sum("the routine is overloaded" in one for one in reasons) == 2
    units = (
        _unit("PACKAGE", "BANK", "PACKAGE bank IS END;"),
        _unit("PACKAGE BODY", "BANK", f"PACKAGE BODY bank IS {routine} END;"),
    )
    statements = convert(_inventory(*units), SETTINGS)
    (reason,) = [one.reason for one in statements if one.name == "BANK.BANK"]
    assert "already exists for tables" in reason


def test_packages_of_one_name_in_two_schemas_are_named() -> None:
    text = "PACKAGE BODY q IS PROCEDURE p IS BEGIN NULL; END; END;"
    units = [
        UnitSource(owner=owner, name="Q", kind=kind, text=one)
        for owner in ("BANK", "SHOP")
        for kind, one in (("PACKAGE", "PACKAGE q IS END;"), ("PACKAGE BODY", text))
    ]
    found = [one for one in convert(_inventory(*units), SETTINGS) if one.name.endswith(".Q")]
    assert [(one.name, one.runs) for one in found] == [("BANK.Q", False), ("SHOP.Q", False)]


def test_a_package_with_the_rights_of_its_callers_has_no_remark() -> None:
    text = "PACKAGE BODY q IS PROCEDURE p IS BEGIN NULL; END; END;"
    head = "PACKAGE q AUTHID CURRENT_USER IS PROCEDURE p; END;"
    units = (_unit("PACKAGE", "Q", head), _unit("PACKAGE BODY", "Q", text))
    (made,) = (one for one in convert(_inventory(*units), SETTINGS) if one.name == "BANK.Q.P")
    assert made.runs
    assert made.remark == ""
