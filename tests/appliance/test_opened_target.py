"""The target, opened for one piece of work."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.appliance.opened_target import opened_target
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.model import Config


def config_of(folder: Path, **sections: Any) -> Config:
    document = {
        "context": {"data": str(folder / "data")},
        "source": {"kind": "offline", "dictionary": "d.json", "logs": "logs"},
        **sections,
    }
    path = folder / "config.json"
    path.write_text(json.dumps(document), "utf-8")
    return load_config(path)


def test_the_ledger_is_there_and_triggers_fire_unless_it_is_asked_for(
    postgres_database: str, tmp_path: Path
) -> None:
    config = config_of(tmp_path, apply={"connect-string": postgres_database, "tables": ["S.T"]})
    for replica, role in ((False, "origin"), (True, "replica")):
        with opened_target(config, replica=replica) as (connection, target):
            assert target == postgres_database
            assert connection.execute("SELECT count(*) FROM olr_pg.ledger").fetchone() == (0,)
            assert connection.execute("SHOW session_replication_role").fetchone() == (role,)
        assert connection.closed


def test_what_cannot_be_opened_is_told(tmp_path: Path) -> None:
    nobody = {"connect-string": "host=127.0.0.1 port=1", "tables": ["S.T"]}
    for sections, code in (({}, Code.NO_TARGET), ({"apply": nobody}, Code.POSTGRES_UNREACHABLE)):
        with pytest.raises(OlrPgError) as caught, opened_target(config_of(tmp_path, **sections)):
            pass
        assert caught.value.code == code
