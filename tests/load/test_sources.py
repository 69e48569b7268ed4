"""What a command says whose configuration lacks something."""

from __future__ import annotations

from pathlib import Path

import pytest

from olr_pg.config.model import Config
from olr_pg.config.reading import parse_config
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.sources import apply_section, offline_source, open_tables

LIVE = {"user": "u", "password": "p", "server": "db:1521/orcl"}


@pytest.fixture
def live(tmp_path: Path) -> Config:
    return parse_config({"source": LIVE}, folder=tmp_path)


def test_a_live_source_is_no_offline_one(live: Config) -> None:
    with pytest.raises(OlrPgError) as caught:
        offline_source(live)
    assert caught.value.code == Code.NOT_SUPPORTED


def test_there_is_no_target(live: Config) -> None:
    with pytest.raises(OlrPgError) as caught:
        apply_section(live)
    assert caught.value.code == Code.NO_TARGET


def test_a_live_source_takes_no_folder_of_rows(live: Config, tmp_path: Path) -> None:
    with pytest.raises(OlrPgError, match="--tables") as caught, open_tables(live, folder=tmp_path):
        pass
    assert caught.value.code == Code.NOT_SUPPORTED
