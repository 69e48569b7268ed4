"""PL/SQL units in the form of the examples of Oracle's PL/SQL Language Reference, by chapter.

Each case of `cases/documented_units.sql` has the form of an example of that book (chapters 2 to 13,
by the numbers of 11.2), or of an often published pattern (14), and the output that is printed there
or follows from what is said there. Cases of 15 and 16 combine several chapters. Lines begin with
``##`` (the title), ``$`` (a statement to run), ``>`` (a line that DBMS_OUTPUT prints), ``=`` (the
first value of the last statement's result), ``?`` (the error of the last statement) or ``!`` (the
unit is refused; words of the reason). Units are separated by a line with ``/``. An anonymous block
becomes the procedure P.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
import pytest

from olr_pg.dictionary.inventory import (
    Inventory,
    InventoryTable,
    InventoryView,
    Trigger,
    UnitSource,
)
from olr_pg.dictionary.structure import Sequence
from olr_pg.schema.conversion import convert
from tests.schema.hr_relations import DEPARTMENTS, EMPLOYEES, MAKE
from tests.schema.shop_relations import SETTINGS, column

TEXT: Final = (Path(__file__).parents[1] / "cases" / "documented_units.sql").read_text("utf-8")
_TRIGGER: Final = re.compile(
    r"TRIGGER\s+(?P<name>\w+)\s+(?P<time>BEFORE|AFTER|INSTEAD OF|FOR)\s+(?P<event>.*?)\s+ON\s+"
    r"(?P<table>\w+)(?P<more>(\s+REFERENCING.*?)?)(?P<row>\s+FOR EACH ROW)?"
    r"(\s+WHEN\s*\((?P<when>[^()]*)\))?"
    r"\s+(?P<body>(DECLARE|BEGIN|COMPOUND|CALL)\b.*)",
    re.DOTALL,
)


class Case(NamedTuple):
    title: str
    units: list[str]
    statements: list[str]
    printed: list[str]
    value: str | None
    error: str | None
    refused: str | None


def _loose(table: InventoryTable, name: str) -> InventoryTable:
    """The table under another name, without its NOT NULL."""
    columns = [one.__class__(**{**{f: getattr(one, f) for f in one.__slots__}, "nullable": True})
               for one in table.columns]  # fmt: skip
    return InventoryTable(owner="HR", name=name, columns=tuple(columns))


EMP_LOG: Final = InventoryTable(owner="HR", name="EMP_LOG", columns=(
    column("EMP_ID", "NUMBER", length=22), column("LOG_DATE", "DATE", length=7),
    column("NEW_SALARY", "NUMBER", length=22),
    column("ACTION", "VARCHAR2", length=20, char_length=20),
))  # fmt: skip
ERRORS: Final = InventoryTable(owner="HR", name="ERRORS", columns=(
    column("CODE", "NUMBER", length=22), column("MESSAGE", "VARCHAR2", length=64, char_length=64),
))  # fmt: skip
RESULTS: Final = InventoryTable(owner="HR", name="RESULTS", columns=(
    column("RES_NAME", "VARCHAR2", length=20, char_length=20),
))  # fmt: skip
TABLES: Final = (
    EMPLOYEES, DEPARTMENTS, _loose(EMPLOYEES, "EMP_TEMP"), _loose(DEPARTMENTS, "DEPT_TEMP"),
    EMP_LOG, ERRORS, RESULTS,
)  # fmt: skip
VIEWS: Final = {
    "emp_view": (
        EMPLOYEES.columns[0], EMPLOYEES.columns[2], DEPARTMENTS.columns[0], DEPARTMENTS.columns[1],
    ),
    "ev": ERRORS.columns,
    "pay": (EMPLOYEES.columns[2], column("Y", "NUMBER", length=22)),
}  # fmt: skip
ALSO: Final = """
CREATE TABLE hr.emp_temp (LIKE hr.employees);
CREATE TABLE hr.dept_temp (LIKE hr.departments);
ALTER TABLE hr.emp_temp ALTER employee_id DROP NOT NULL, ALTER last_name DROP NOT NULL,
    ALTER hire_date DROP NOT NULL, ALTER job_id DROP NOT NULL;
ALTER TABLE hr.dept_temp ALTER department_id DROP NOT NULL, ALTER department_name DROP NOT NULL;
CREATE TABLE hr.emp_log (emp_id numeric, log_date timestamp(0), new_salary numeric,
    action varchar(20));
CREATE TABLE hr.errors (message varchar(64), code numeric);
CREATE TABLE hr.results (res_name varchar(20));
CREATE SEQUENCE hr.employees_seq;
"""


def _cases() -> list[Case]:
    found = []
    for part in TEXT.split("\n## ")[0:]:
        title, *lines = part.removeprefix("## ").splitlines()
        marked = {sign: [x[2:] for x in lines if x[:1] == sign] for sign in "$>=?!"}
        code = "\n".join(x for x in lines if x[:1] not in (*"$>=?!",))
        units = [one.strip() for one in re.split(r"^/$", code, flags=re.MULTILINE) if one.strip()]
        units = [re.sub(r"^(DECLARE|BEGIN)\b", _as_procedure, one) for one in units]
        is_run = any(re.match(r"PROCEDURE p\s+(AUTHID \w+ )?(IS|AS)\b", one) for one in units)
        found.append(Case(
            title, units, marked["$"] or (["CALL hr.p()"] if is_run else []), marked[">"],
            *(marked[sign][-1] if marked[sign] else None for sign in "=?!"),
        ))  # fmt: skip
    return found


def _as_procedure(found: re.Match[str]) -> str:
    return "PROCEDURE p IS" + (" BEGIN" if found[1] == "BEGIN" else "")


def _inventory(units: list[str]) -> Inventory:
    sources, triggers, views = list[UnitSource](), list[Trigger](), list[InventoryView]()
    for text in units:
        kind = text.split()[0]
        if kind == "TRIGGER":
            triggers.append(_trigger(text))
        elif kind == "VIEW":
            name, query = text.split(" ", 3)[1], text.split(" ", 3)[3]
            views.append(
                InventoryView(
                    owner="HR", name=name.upper(), text=query, columns=VIEWS.get(name, ())
                )
            )
        else:
            kind = "PACKAGE BODY" if text.startswith("PACKAGE BODY") else kind
            name = text.removeprefix(kind).split()[0].split("(")[0].upper()
            sources.append(UnitSource(owner="HR", name=name, kind=kind, text=text))
    return Inventory(
        owners=("HR",), tables=TABLES, sources=tuple(sources), triggers=tuple(triggers),
        views=tuple(views), sequences=(Sequence(owner="HR", name="EMPLOYEES_SEQ", next=1),),
    )  # fmt: skip


def _trigger(text: str) -> Trigger:
    found = _TRIGGER.fullmatch(text)
    assert found is not None, text
    level = " EACH ROW" if found["row"] else " STATEMENT"
    kind = found["time"] + (level if found["time"] in ("BEFORE", "AFTER") else "")
    kind = "COMPOUND" if found["body"].startswith("COMPOUND") else kind
    event = re.sub(r"UPDATE OF [\w, ]+?(?= OR |$)", "UPDATE", found["event"])
    return Trigger(
        owner="HR", name=found["name"].upper(), kind=kind, event=event, table_owner="HR",
        table=found["table"].upper(), when=found["when"] or "", head=text[: found.start("body")],
        body=found["body"],
    )  # fmt: skip


def _outcome(case: Case, target: psycopg.Connection[Any]) -> tuple[str, Any]:
    """Return (right, refused, wrong or unexpectedly done; what was found)."""
    statements = convert(_inventory(case.units), SETTINGS)
    code = [one for one in statements if one.kind in ("by hand", "function", "procedure", "trigger",
            "view", "schema")]  # fmt: skip
    reasons = [one.reason for one in code if not one.runs]
    if reasons:
        return "refused", reasons
    printed, rows, error = list[str](), None, None

    def note(one: psycopg.errors.Diagnostic) -> None:
        printed.append(str(one.message_primary))

    target.add_notice_handler(note)
    try:
        with target.transaction(force_rollback=True):
            target.execute("ALTER SEQUENCE hr.employees_seq RESTART")
            for one in code:
                if one.kind != "schema" or one.what == "package":
                    target.execute(one.sql.encode())
            for statement in case.statements:
                cursor = target.execute(statement.encode())
                rows = cursor.fetchall() if cursor.description else None
    except psycopg.Error as found:
        error = str(found).splitlines()[0]
        if error != case.error:
            return "wrong", str(found)
    finally:
        target.remove_notice_handler(note)
    if error is None and case.error is not None:
        return "wrong", "no error"
    if printed != case.printed:
        return "wrong", printed
    value = None if not rows else str(rows[0][0])
    if case.value is not None and not _same(value, case.value):
        return "wrong", value
    return "right", None


def _same(found: str | None, wanted: str) -> bool:
    try:
        return found is not None and (found == wanted or float(found) == float(wanted))
    except ValueError:
        return False


@pytest.fixture(scope="module")
def outcomes(postgres: str) -> dict[str, tuple[Case, str, Any]]:
    found = {}
    with psycopg.connect(postgres) as target:
        target.execute((MAKE + ALSO).encode())
        for case in _cases():
            state, what = _outcome(case, target)
            found[case.title] = case, state, what
        target.rollback()
    return found


def test_no_unit_is_translated_wrongly(outcomes: dict[str, tuple[Case, str, Any]]) -> None:
    wrong = {title: what for title, (case, state, what) in outcomes.items() if state == "wrong"}
    assert wrong == {}


def test_units_without_an_equal_are_refused_with_the_reason(
    outcomes: dict[str, tuple[Case, str, Any]],
) -> None:
    others = {}
    for title, (case, state, what) in outcomes.items():
        if case.refused is None:
            continue
        named = state == "refused" and any(
            case.refused.upper() in one.upper() or case.refused == "*" for one in what
        )
        if not named:
            others[title] = state, what
    assert others == {}


def test_other_units_are_translated(outcomes: dict[str, tuple[Case, str, Any]]) -> None:
    refused = {title: what for title, (case, state, what) in outcomes.items()
               if state == "refused" and case.refused is None}  # fmt: skip
    assert refused == {}
