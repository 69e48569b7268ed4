"""Names and types in statements with parameters, and the errors of changes that have none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from psycopg import sql

from olr_pg.applier.statements.bound_statement import (
    KeyMissingError,
    UnwritableError,
    name_of,
    table_of,
    type_of,
)
from olr_pg.errors import Code


def test_names_and_types_are_quoted_and_percent_signs_doubled() -> None:
    assert name_of('odd "50%" name').as_string() == '"odd ""50%%"" name"'
    column: Any = SimpleNamespace(base_name='"my%type"')
    assert type_of(column).as_string() == '"my%%type"'
    plan: Any = SimpleNamespace(target=SimpleNamespace(identifier=sql.Identifier("s", "100%")))
    assert table_of(plan).as_string() == '"s"."100%%"'


def test_a_change_without_its_key_is_a_conflict_that_names_the_cause() -> None:
    error = KeyMissingError(4)
    assert isinstance(error, UnwritableError)
    assert (error.number, error.error.code) == (4, Code.CHANGE_CONFLICTS)
    assert "supplemental logging" in error.error.action
