"""The page while an initial load works."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.config.reading import parse_config
from olr_pg.dictionary.model import Database
from olr_pg.errors import OlrPgError
from olr_pg.load import load_page as page_module
from olr_pg.load.load_page import load_page
from olr_pg.load.load_progress import LoadState, TableLoadProgress
from olr_pg.monitor.service import FILE_NAME

TARGETS = {"S.T": ("s", "t")}


def config_of(folder: Path, database: str, **status: Any) -> Any:
    document = {
        "context": {"data": str(folder)},
        "source": {"kind": "offline", "dictionary": "d", "logs": "l"},
        "apply": {"connect-string": database, "tables": ["S.T"]},
        "status": {"address": "127.0.0.1:0", **status},
    }
    return parse_config(document, folder)


def one_table(rows: int) -> Any:
    table = SimpleNamespace(full_name="S.T")
    return [SimpleNamespace(table=table, data=SimpleNamespace(rows=rows))]


def test_an_address_that_cannot_be_written_is_no_defect(
    tmp_path: Path, postgres_database: str
) -> None:
    (tmp_path / f"{FILE_NAME}.new").mkdir()
    config = config_of(tmp_path, postgres_database)
    with (
        pytest.raises(OlrPgError) as caught,
        load_page(config, postgres_database, Database("FREE"), TARGETS, one_table(40)),
    ):
        pass
    assert caught.value.code == 1092
    assert caught.value.where == {"path": str(tmp_path)}
    assert not [one for one in threading.enumerate() if one.name == "olr-status"]


def test_it_shows_what_is_in(
    tmp_path: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "LOOK_SECONDS", 0.05)
    config = config_of(tmp_path, postgres_database)
    source = Database("FREE")
    with (
        connect(postgres_database) as connection,
        load_page(config, postgres_database, source, TARGETS, one_table(40)) as page,
    ):
        assert page is not None
        ensure_ledger(connection)
        progress = TableLoadProgress("olr_pg", "S.T", "s.t")
        progress.begin(connection, LoadState(500, 400, "files", 4))
        with connection.transaction():
            progress.claim(connection, 0, 500)
            progress.note(connection, 0, 10, 1000)
        deadline = time.monotonic() + 60
        while True:
            with urllib.request.urlopen(page.url + "status.json", timeout=60) as answer:
                record = json.load(answer)
            if record["loads"] and record["loads"][0]["parts_done"]:  # of two looks the first
                break
            assert time.monotonic() < deadline
            time.sleep(0.01)
        (load,) = record["loads"]
        assert (load["table"], load["rows"], load["rows_expected"]) == ("S.T", 10, 40)
        assert (load["parts"], load["parts_done"]) == (4, 1)
        assert (record["health"], record["state"]["name"]) == ("ok", "LOADING")
        assert record["identity"]["source"] == "FREE"
        # An appliance, or another load, has its page already.
        with load_page(config, postgres_database, source, TARGETS, one_table(40)) as second:
            assert second is None
    assert not (tmp_path / "status.json").exists()


def test_where_none_is_wanted(tmp_path: Path, postgres_database: str) -> None:
    config = config_of(tmp_path, postgres_database, enabled=False)
    with load_page(config, postgres_database, Database("FREE"), TARGETS, []) as page:
        assert page is None
