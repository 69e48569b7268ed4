"""The decoded logs of a run, which are runs of consecutive sequences."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from olr_pg.capture.archived_log import LogPosition
from olr_pg.capture.finished_logs import DecodedLogs


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 6))))
def test_it_knows_what_a_set_knows(logs: list[tuple[int, int, int]]) -> None:
    decoded, known = DecodedLogs(), set[LogPosition]()
    for resetlogs, thread, sequence in logs:
        position = LogPosition(resetlogs, thread, sequence, 7)
        decoded.add(position)
        known.add(position)
    for resetlogs in (1, 2):
        for thread in (1, 2, 3):
            for sequence in range(8):
                one = LogPosition(resetlogs, thread, sequence, 7)
                assert (one in decoded) == (one in known)
                assert one._replace(dbid=8) not in decoded
    for thread in (1, 2, 3):
        of_thread = [one for one in known if one.thread == thread]
        assert decoded.newest(thread) == max(of_thread, default=None)


def test_consecutive_logs_take_no_more_room() -> None:
    decoded = DecodedLogs()
    for sequence in range(1, 10_000):
        for thread in (1, 2):
            decoded.add(LogPosition(5, thread, sequence, 7))
    assert len(decoded) == 2
