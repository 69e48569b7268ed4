"""The context of a port that is encrypted."""

from __future__ import annotations

from pathlib import Path

import pytest

from olr_pg.config.port_sections import Tls
from olr_pg.config.tls import server_context
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
