"""Asking a running appliance, where none runs."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from olr_pg.config.model import Config
from olr_pg.config.reading import parse_config
from olr_pg.errors import OlrPgError
from olr_pg.monitor.service import FILE_NAME
from olr_pg.monitor.status_client import announced_process, ask_status


@pytest.fixture
def config(tmp_path: Path) -> Config:
    source = {"user": "u", "password": "p", "server": "db:1521/orcl"}
    document = {"context": {"data": str(tmp_path)}, "source": source}
    return parse_config(document, folder=tmp_path)


def test_no_appliance_has_left_an_address(config: Config) -> None:
    with pytest.raises(OlrPgError) as caught:
        ask_status(config)
    assert caught.value.code == 9010


@pytest.mark.parametrize("ask", [ask_status, announced_process])
def test_what_keeps_from_reading_the_address(
    ask: Callable[[Config], object], config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(_: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", unreadable)
    with pytest.raises(OlrPgError) as caught:
        ask(config)
    assert (caught.value.code, caught.value.detail) == (9011, "Permission denied")
    assert caught.value.action == "run the command as the user of the appliance or as root"
    monkeypatch.undo()
    with pytest.raises(OlrPgError) as caught:
        ask(config)
    assert caught.value.code == 9010
    tmp_path.rmdir()
    tmp_path.touch()
    with pytest.raises(OlrPgError) as caught:
        ask(config)
    assert caught.value.code == 9010


@pytest.mark.parametrize("left", ["", "[]", "{}", json.dumps({"url": "http://127.0.0.1:1/"})])
def test_an_address_where_nobody_answers(config: Config, tmp_path: Path, left: str) -> None:
    (tmp_path / FILE_NAME).write_text(left, "utf-8")
    with pytest.raises(OlrPgError) as caught:
        ask_status(config)
    assert caught.value.code in (9010, 9011)
