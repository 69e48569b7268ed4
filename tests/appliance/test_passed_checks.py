"""What doctor says that it has checked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.appliance import passed_checks as passed
from olr_pg.config.model import Config
from olr_pg.observability.findings import error

if TYPE_CHECKING:
    from collections.abc import Mapping

OFFLINE = {"kind": "offline", "dictionary": "d.json", "logs": "logs"}
LIVE = {"kind": "oracle", "user": "olr", "password": "p", "server": "h:1/S"}
APPLY = {"connect-string": "host=h dbname=d", "tables": ["A.B"]}
ALL = (
    *(*passed.OFFLINE, *passed.LIVE, *passed.STANDBY, *passed.ONLINE, *passed.LOAD),
    *(*passed.FILTER, *passed.LIVE_FILTER, *passed.MAPPING),
    *(*passed.PLANNED_TARGET, *passed.TARGET, *passed.MACHINE),
)
PACKAGE = Path(passed.__file__).parent.parent


def config(source: Mapping[str, Any], **parts: Any) -> Config:
    return Config.model_validate({"source": source, **parts})


def names(one: Config, *failed: str, for_load: bool = False) -> list[str]:
    findings = [error(name, "is wrong") for name in failed]
    return [check.name for check in passed.passed_checks(one, findings, for_load=for_load)]


def test_what_failed_has_not_passed_nor_what_needs_it() -> None:
    healthy = names(config(OFFLINE, apply=APPLY))
    made = (
        *passed.OFFLINE,
        *passed.MAPPING,
        *passed.PLANNED_TARGET,
        *passed.TARGET,
        *passed.MACHINE,
    )
    assert healthy == [check.name for check in made]
    assert set(healthy) - set(names(config(OFFLINE, apply=APPLY), "disk")) == {"disk"}
    away = names(config(OFFLINE, apply=APPLY), "postgres.connection")
    assert away == [
        *(check.name for check in (*passed.OFFLINE, *passed.MAPPING)),
        *("postgres.names", "files", "directory", "disk", "encryption", "spark.java"),
    ]
    unread = names(config(OFFLINE, apply=APPLY), "offline.dictionary")
    assert unread == [
        *("postgres.names", "postgres.connection", "postgres.pooler", "postgres.version"),
        *(
            "postgres.privileges",
            "postgres.tls",
            "postgres.search-path",
            "postgres.ledger",
            "postgres.database",
            "postgres.connections",
        ),
        *("postgres.locks", "postgres.prepared-transactions", "postgres.event-triggers"),
        *("files", "directory", "disk", "encryption", "spark.java"),
    ]


def test_only_what_was_looked_at_is_listed() -> None:
    bare = names(config(LIVE))
    assert not [name for name in bare if name.startswith("postgres") or name == "oracle.tables"]
    assert "oracle.standby" in names(config(LIVE), for_load=True)
    standby = {"server": "h:1521/S", "user": "u", "password": "p"}
    assert "oracle.standby-redo" in names(config({**LIVE, "standby": standby}))
    unread = names(config({**LIVE, "standby": standby}), "oracle.standby-redo")
    assert not {"oracle.standby-redo", "oracle.logs", "oracle.retention"} & set(unread)
    embedded = {**APPLY, "connect-string": "embedded"}
    of_target = [one for one in names(config(LIVE, apply=embedded)) if one.startswith("postgres")]
    assert of_target == ["postgres.names", "postgres.limits"]
    assert "oracle.online-logs" in names(config({**LIVE, "redo": "online"}))
    filtered = config(OFFLINE, apply=APPLY, filter={"tables": {"exclude": ["A.C"]}})
    assert "filter" in names(filtered)


@pytest.mark.parametrize("check", ALL, ids=lambda check: check.name)
def test_every_name_is_that_of_findings(check: passed.Check) -> None:
    sources = [path.read_text("utf-8") for path in PACKAGE.rglob("*checks.py")]
    sources += [path.read_text("utf-8") for path in PACKAGE.rglob("grants.py")]
    sources += [path.read_text("utf-8") for path in PACKAGE.rglob("*_kind*.py")]
    sources += [path.read_text("utf-8") for path in PACKAGE.rglob("fixed_limits.py")]
    quoted = re.compile(rf'"{re.escape(check.name)}"')
    own = Path(passed.__file__).read_text("utf-8")
    assert any(quoted.search(text) for text in sources if text != own), check.name
