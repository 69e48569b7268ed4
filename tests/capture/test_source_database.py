"""How often an offline source is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.capture.online_logs import OnlineLogs
from olr_pg.capture.source_database import OfflineDatabase
from tests.oracle.conftest import make_snapshot

if TYPE_CHECKING:
    from pathlib import Path


def test_archived_logs_are_looked_for_at_one_pace() -> None:
    source = OfflineDatabase(make_snapshot(), [], poll_seconds=0.2)
    assert not source.is_online
    assert {source.pause(idle) for idle in range(100)} == {0.2}


def test_where_online_logs_are_read_quiet_times_have_fewer_looks(tmp_path: Path) -> None:
    online = OnlineLogs(tmp_path)
    source = OfflineDatabase(make_snapshot(), [], poll_seconds=0.2, online=online)
    pauses = [source.pause(idle) for idle in range(2_000)]
    assert pauses[0] == 0.2
    assert pauses == sorted(pauses)
    assert pauses[-1] == 2.0
    online.close()
