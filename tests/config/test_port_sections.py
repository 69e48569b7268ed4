"""The context of a port that is encrypted.

How to connect to a PostgreSQL, as the configuration says it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from olr_pg.config.port_sections import PostgresConnection, PostgresServer, Tls, server_context
from olr_pg.errors import Code, OlrPgError


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    tls = Tls.model_construct(
        certificate=tmp_path / "c.pem", key=tmp_path / "k.pem", key_password=None, client_ca=None
    )
    with pytest.raises(OlrPgError) as caught:
        server_context(tls)
    assert caught.value.code == Code.TLS_FILES_UNUSABLE
    assert caught.value.where["file"] == str(tmp_path / "c.pem")


def test_a_file_without_a_certificate_is_told_without_places_in_a_library(tmp_path: Path) -> None:
    certificate = tmp_path / "c.pem"
    certificate.write_text("none")
    tls = Tls.model_construct(
        certificate=certificate, key=certificate, key_password=None, client_ca=None
    )
    with pytest.raises(OlrPgError) as caught:
        server_context(tls)
    assert caught.value.detail == "PEM lib"


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
