"""The catalogue is whole, and its errors survive the way to another process."""

from __future__ import annotations

import ast
import pickle
import re
import ssl
from pathlib import Path
from typing import Final

import psycopg
import pytest

from olr_pg import errors
from olr_pg.errors import Code, OlrPgError, format_place, located, plain_reason, system_reason
from olr_pg.postgres.sqlstates import Meaning, meant_by
from tests.package_trees import modules_with


def test_every_code_has_a_title_and_advice_and_is_in_its_place() -> None:
    assert list(Code) == sorted(Code)
    assert list(Code.__members__) == [code.name for code in Code]  # no number is used twice
    for code in Code:
        assert code.title, code
        assert code.action, code
        assert not code.title.endswith("."), code
        assert not code.action.endswith("."), code


def test_the_thousand_is_the_area_and_decides_the_exit_code() -> None:
    assert {code // 1000 for code in Code} <= set(range(1, 10))
    assert Code.BLOCK_CORRUPT.exit_code == 3
    assert Code.INTERNAL.exit_code == 70
    assert Code.NO_APPLIANCE.exit_code == 12
    assert all(1 <= code.exit_code <= 125 for code in Code)


def test_an_error_says_code_title_detail_and_place() -> None:
    error = OlrPgError(Code.BLOCK_CORRUPT, "wrong", thread=1, block=None, sequence=19)
    title = Code.BLOCK_CORRUPT.title
    assert str(error) == f"{error.label}: {title}: wrong [thread 1, sequence 19]"
    assert error.label == f"OLR-{Code.BLOCK_CORRUPT:05d}"
    assert error.action == Code.BLOCK_CORRUPT.action
    assert format_place({}) == ""


def test_it_is_the_same_behind_a_pickle() -> None:
    error = OlrPgError(Code.BLOCK_CORRUPT, "wrong", action="look", thread=1)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.action, again.where) == (str(error), "look", {"thread": 1})


def test_a_place_further_out_stands_in_front_and_does_not_replace_one() -> None:
    error = located(OlrPgError(Code.BLOCK_CORRUPT, "x", block=7), file="f", block=1)
    assert list(error.where.items()) == [("file", "f"), ("block", 7)]


def test_a_code_that_is_not_in_the_catalogue_is_a_bug() -> None:
    with pytest.raises(ValueError, match="4711"):
        OlrPgError(4711, "x")


def test_every_code_is_raised_by_some_module() -> None:
    package = Path(errors.__file__).parent
    named = {
        name
        for path in package.rglob("*.py")
        if path != Path(errors.__file__)
        for name in re.findall(r"Code\.([A-Z][A-Z_0-9]+)", path.read_text("utf-8"))
    }
    assert {code.name for code in Code} - named == set()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(2, "No such file or directory", "x.json"),
         "x.json: No such file or directory"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("[Errno 28] Error writing. Detail: [errno 28] No space"),
         "Error writing. Detail: No space"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)"),
         "wrong version number"),
        (KeyError("format"), "format is missing"),
        (ValueError("\n first line \nsecond"), "first line"),
        (ValueError(), "no reason is given"),
    ],
)  # fmt: skip
def test_a_reason_names_no_class_of_python(error: Exception, words: str) -> None:
    assert plain_reason(error) == words


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(2, "No such file or directory", "x.json"), "No such file or directory"),
        (OSError("the disk went away"), "the disk went away"),
        (OSError(), "no reason is given"),
    ],
)
def test_what_the_system_says_is_without_the_file_that_the_place_names(
    error: Exception, words: str
) -> None:
    assert system_reason(error) == words


# --- errors of PostgreSQL ---

_PLACE: Final = "postgres/sqlstates.py"


def test_no_class_of_the_driver_decides_a_meaning_elsewhere() -> None:
    """Elsewhere, `psycopg.Error` is caught, and single codes that are an answer to a statement."""
    found = [
        f"{place}:{name.lineno} {ast.unparse(name)}"
        for place, tree in modules_with("psycopg")
        if place != _PLACE and not place.startswith("bench/")
        for node in ast.walk(tree)
        for name in _judged(node)
        if not _is_allowed(name)
    ]
    assert found == []


def _judged(node: ast.AST) -> list[ast.Attribute]:
    """Return the driver's classes that an `except`, an `isinstance` or a constant names."""
    match node:
        case ast.ExceptHandler(type=ast.expr() as judged):
            pass
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, judged]):
            pass
        case ast.Assign(value=judged) | ast.AnnAssign(value=ast.expr() as judged):
            if any(isinstance(one, ast.Call) for one in ast.walk(judged)):
                return []
        case _:
            return []
    return [
        one
        for one in ast.walk(judged)
        if isinstance(one, ast.Attribute) and ast.unparse(one).startswith("psycopg.")
    ]


def _is_allowed(name: ast.Attribute) -> bool:
    text = ast.unparse(name)
    if text in {"psycopg.Error", "psycopg.errors"}:
        return True
    one = getattr(psycopg.errors, name.attr, None)
    state = getattr(one, "sqlstate", None)
    return isinstance(state, str) and meant_by(state).meaning is Meaning.STATEMENT
