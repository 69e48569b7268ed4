"""Connect strings with timeouts: a server that vanished is noticed, and what was said holds."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from olr_pg.postgres.keepalive import with_timeouts


def test_a_server_that_vanishes_is_noticed_within_a_minute_or_so() -> None:
    found = conninfo_to_dict(with_timeouts("host=h dbname=d"))
    assert (found["host"], found["dbname"]) == ("h", "d")
    idle, interval, count = (
        int(str(found[f"keepalives_{name}"])) for name in ("idle", "interval", "count")
    )
    assert idle + interval * count <= 60
    assert int(str(found["tcp_user_timeout"])) <= 60_000
    assert int(str(found["connect_timeout"])) > 0


def test_what_the_connect_string_says_holds() -> None:
    found = conninfo_to_dict(with_timeouts("postgresql://u@h:1/d?keepalives_idle=7"))
    assert (found["keepalives_idle"], found["user"], found["port"]) == ("7", "u", "1")


def test_no_connect_string() -> None:
    with pytest.raises(psycopg.ProgrammingError):
        with_timeouts("no connect string")
