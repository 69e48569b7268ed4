"""How often an offline source is looked at."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from olr_pg.capture.online_logs import OnlineLogs
from olr_pg.capture.source_database import OfflineDatabase
from olr_pg.errors import Code
from tests.oracle.conftest import make_snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import RealLogs


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


def test_a_compressed_log_that_was_read_is_no_problem_any_more(logs: RealLogs) -> None:
    """Scripts compress old logs where they are."""
    logs.put("16.arc", logs.second)
    logs.put("15.arc.gz", gzip.compress(logs.first))
    source = OfflineDatabase(make_snapshot(), [str(logs.folder)])
    (problem,) = source.scan(2_267_000, 0).unusable
    assert problem.code == Code.LOG_COMPRESSED
    found = source.scan(2_267_717, 0)
    assert found.unusable == ()
    assert len(found.logs) == 1
