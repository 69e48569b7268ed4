"""Logs that exist, but not here: behind the last log of a thread no gap shows them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from olr_pg.capture.capture_state import CapturePhase
from tests.replicator.scripted_source import Rac, Reader, make_rac

pytestmark = pytest.mark.timeout(900)  # the first test may compile the kernels


@pytest.fixture(scope="module")
def rac(tmp_path_factory: pytest.TempPathFactory) -> Rac:
    return make_rac(tmp_path_factory.mktemp("rac"))


@pytest.mark.parametrize("kept", [0, 1, 3, 6])
@pytest.mark.parametrize("opened", [(1,), (1, 2)])
def test_the_last_logs_of_a_thread_are_waited_for(
    rac: Rac, kept: int, opened: tuple[int, ...]
) -> None:
    start = 0 if kept else rac.one[0].header.first_scn
    source = rac.source(*opened)
    source.logs, source.absent = rac.one + rac.two[:kept], rac.two[kept:]
    with Reader(source, start) as reader:
        reader.settle()
        state = reader.delivery.state
        assert state.phase is CapturePhase.WAITING_FOR_REDO
        assert state.reason is not None
        assert state.reason.code == 2010
        assert state.reason.where["thread"] == 2
        assert state.reason.where["sequence"] == rac.two[kept].header.sequence
        assert len(reader.delivery.progress.source.gaps) == len(source.absent)
        taken = reader.take()
        assert all(one.commit_scn < rac.two[kept].header.first_scn for one in taken)
        # They are restored.
        source.logs, source.absent = rac.one + rac.two, []
        reader.settle()
        assert taken + reader.take() == rac.truth
        assert reader.failure() is None


def test_a_single_run_ends_with_what_is_missing(rac: Rac) -> None:
    source = rac.source(1)
    source.logs, source.absent = rac.one + rac.two[:6], rac.two[6:]
    with Reader(source, once=True) as reader:
        reader.drain()
        failure = reader.failure()
    assert failure is not None
    assert failure.code == 2010
    assert failure.where["sequence"] == rac.two[6].header.sequence


def test_what_lies_before_the_beginning_is_not_missing(rac: Rac) -> None:
    """RMAN deletes the logs of each thread up to a time; reading begins behind it, with a
    dictionary of that time.
    """
    source = rac.source(1, 2)
    scn = max(rac.one[3].header.first_scn, rac.two[4].header.first_scn)
    source.snapshot = replace(source.snapshot, scn=scn)
    source.logs, source.absent = rac.one[3:] + rac.two[4:], rac.one[:3] + rac.two[:4]
    with Reader(source, once=True) as reader:
        reader.drain()
        assert reader.failure() is None
        assert reader.take()


def test_logs_that_were_decoded_may_go(rac: Rac) -> None:
    source = rac.source(1)
    source.logs = rac.one[:7] + rac.two
    with Reader(source) as reader:
        reader.settle()
        source.logs, source.absent = rac.one[6:], rac.one[:6] + rac.two
        reader.settle()
        assert reader.take() == rac.truth
        assert reader.failure() is None


def test_a_closed_thread_that_ended_before_the_beginning(rac: Rac) -> None:
    start = rac.two[3].next_scn
    source = rac.source(1)
    source.logs, source.absent = rac.one, rac.two[:4]
    with Reader(source, start, once=True) as reader:
        reader.drain()
        assert reader.failure() is None
        assert reader.take()


def test_a_log_behind_those_that_were_decoded_and_are_gone_is_waited_for(rac: Rac) -> None:
    """Of copied logs nobody has a list."""
    source = rac.source()
    source.logs = rac.one[:5] + rac.two
    with Reader(source) as reader:
        reader.settle()
        source.logs = rac.one[6:] + rac.two
        reader.settle()
        state = reader.delivery.state
        assert state.phase is CapturePhase.WAITING_FOR_REDO
        assert state.reason is not None
        assert state.reason.where["sequence"] == rac.one[5].header.sequence
        source.logs = rac.one[5:] + rac.two
        reader.settle()
        assert reader.take() == rac.truth
        assert reader.failure() is None


def test_decoded_logs_that_went_out_of_order_are_not_missing(rac: Rac) -> None:
    source = rac.source()
    source.logs = rac.one[:5] + rac.two
    with Reader(source) as reader:
        reader.settle()
        source.logs = [rac.one[0], *rac.one[3:], *rac.two]
        reader.settle()
        assert reader.delivery.state.phase is CapturePhase.CAUGHT_UP
        assert reader.take() == rac.truth
