"""The first configuration file: valid as it is, and what it refers to is named in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from olr_pg.config.reading import parse_text
from olr_pg.config.starter import SECRETS, CopiedSource, LiveSource, starter_text

if TYPE_CHECKING:
    from olr_pg.config.model import Config

FOLDER = Path("/etc/olr")


def parsed(text: str) -> Config:
    return parse_text(text, FOLDER, dict.fromkeys(SECRETS, "s3cret"), file="olr-pg.json")


def test_a_live_source() -> None:
    source = LiveSource("db:1521/PDB", "olr", ["/u01/arch", "/mnt/arch"])
    text = starter_text(source, "host=pg dbname=app password='${PG_PASSWORD}'", ["SHOP.ORDERS"])
    config = parsed(text)
    assert config.source.kind == "oracle"
    assert config.source.server == "db:1521/PDB"
    assert config.source.password.get_secret_value() == "s3cret"
    assert config.apply is not None
    assert config.apply.create_tables
    assert "ORACLE_PASSWORD and PG_PASSWORD." in text


def test_copied_logs() -> None:
    text = starter_text(CopiedSource("d.json", ["archive"]), "embedded", ["SHOP.ORDERS"])
    config = parsed(text)
    assert config.source.kind == "offline"
    assert config.apply is not None
    assert config.apply.embedded
    assert "refers to: none." in text


@given(st.text(alphabet="ab\"\\/ {}'é€", min_size=1, max_size=8))
def test_no_answer_breaks_the_file(path: str) -> None:
    config = parsed(starter_text(CopiedSource("/x/" + path, ["/y"]), "embedded", ["A.B"]))
    assert config.source.kind == "offline"
    assert config.source.dictionary == (Path("/x/" + path),)
