"""How to connect to a PostgreSQL, as the configuration says it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from olr_pg.config.connect_string import PostgresConnection, PostgresServer


def accepts(kind: Any, value: object) -> bool:
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    "text", ["embedded", "postgresql://u:p@h/d", "host=h dbname=d password='a b'"]
)
def test_connections(text: str) -> None:
    assert accepts(PostgresConnection, text)


@pytest.mark.parametrize(
    "text", ["other", "postgresql://u:p@w@h/d", "host=h nonsense=5", "postgresql://u:p/w@h/d"]
)
def test_what_is_no_connection_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(PostgresConnection).validate_python(text)
    assert "p@w" not in str(caught.value.errors(include_input=False))


def test_a_server_is_one_that_is_there() -> None:
    assert accepts(PostgresConnection, "embedded")
    assert not accepts(PostgresServer, "embedded")
    assert accepts(PostgresServer, "postgresql://h/d")
