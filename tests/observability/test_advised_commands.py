"""Commands in texts, made complete.

Errors of the catalogue as records and as text.
"""

from __future__ import annotations

import ast
from itertools import accumulate
from pathlib import Path

import olr_pg
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.advised_commands import (
    commands_of_error,
    complete_commands,
    failure_record,
    format_failure,
)


def test_commands_of_an_error_name_the_table_and_the_number() -> None:
    text = Code.CHANGE_REFUSED.action
    told = complete_commands(commands_of_error(text, "S.T", 17), "x.json")
    assert "`olr-pg errors show 17 --config x.json`" in told
    assert "`olr-pg errors retry S.T --config x.json`" in told
    assert "`olr-pg errors skip 17 --config x.json`" in told
    assert commands_of_error("`olr-pg errors show`", "S.T", 0) == "`olr-pg errors show`"


def test_what_takes_no_configuration_and_no_target_gets_none() -> None:
    text = "`olr-pg dump` `olr-pg run` `olr-pg logs --config FILE` `psql`"
    assert complete_commands(text, None) == text
    assert complete_commands(text, "a b", "eu") == (
        "`olr-pg dump` `olr-pg run --config 'a b'` `olr-pg logs --config 'a b'` `psql`"
    )


def test_what_is_complete_stays_as_it_is() -> None:
    done = complete_commands("`olr-pg errors list`", "a b", "eu")
    assert complete_commands(done, "a b", "eu") == done


def test_a_name_with_spaces_and_quotes_is_one_word() -> None:
    told = commands_of_error("`olr-pg initial-load --table OWNER.NAME`", 'S."it\'s x"', 1)
    assert told == """`olr-pg initial-load --table 'S."it'"'"'s x"'`"""


def test_a_record_has_code_what_where_and_action() -> None:
    error = OlrPgError(2005, "the checksum is wrong", sequence=7, block=12)
    assert failure_record(error) == {
        "code": "OLR-02005",
        "what": "a block of the log is corrupt: the checksum is wrong",
        "where": {"sequence": 7, "block": 12},
        "action": Code.BLOCK_CORRUPT.action,
    }


def test_the_text_has_a_line_for_each() -> None:
    error = OlrPgError(1001, "no such file", action="look again", file="x.json")
    assert format_failure(failure_record(error)).splitlines() == [
        "OLR-01001: the configuration file cannot be read: no such file",
        "  where: file x.json",
        "  to do: look again",
    ]


def test_an_error_without_a_place_has_no_line_for_it() -> None:
    text = format_failure(failure_record(OlrPgError(2001, "looked at nothing")))
    assert "where" not in text


def values_in_commands(file: Path) -> list[str]:
    """Return the expressions that a module writes into the commands of its texts."""
    found = list[str]()
    for text in ast.walk(ast.parse(file.read_text("utf-8"))):
        if not isinstance(text, ast.JoinedStr):
            continue
        written = [str(v.value) if isinstance(v, ast.Constant) else "" for v in text.values]
        for before, value in zip(accumulate(written), text.values, strict=True):
            *outside, inside = before.split("`")
            if len(outside) % 2 and "olr-pg" in inside and isinstance(value, ast.FormattedValue):
                found.append(ast.unparse(value.value))
    return found


def test_names_in_commands_are_words_of_the_shell() -> None:
    """The shell would replace a part of a name such as APP.EMP$OLD."""
    root = Path(olr_pg.__file__).parent
    files = [file for file in root.rglob("*.py") if "`olr-pg" in file.read_text("utf-8")]
    found = [value for file in files for value in values_in_commands(file)]
    assert "shlex.quote(name)" in found
    # `word` is a name that shlex.quote has returned.
    assert [v for v in found if not v.startswith("shlex.quote(") and v != "word"] == []
