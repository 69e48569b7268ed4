"""Whether the logs begin where decoding must start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from olr_pg.capture.logs import discover_logs
from olr_pg.errors import OlrPgError
from olr_pg.replicator.wanted_logs import check_beginning
from olr_pg.simulator.simulate import choose_shape, simulate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from olr_pg.capture.logs import ArchivedLog


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, list[ArchivedLog]]:
    folder = tmp_path_factory.mktemp("source")
    simulate(5, folder, size=400_000, shape=choose_shape(5, "random", threads=2))
    logs = discover_logs([str(folder / "logs")])
    return {number: [one for one in logs if one.header.thread == number] for number in (1, 2)}


def first_of_two(
    threads: Mapping[int, list[ArchivedLog]], sequence: int, incarnation_scn: int
) -> tuple[list[ArchivedLog], int]:
    """Thread 1, and thread 2 from a later log on; an SCN before that one."""
    log = threads[2][2]
    header = replace(log.header, sequence=sequence, resetlogs_scn=incarnation_scn)
    late = replace(log, header=header)
    scn = header.first_scn - 1
    assert threads[1][0].header.first_scn <= scn
    return [*threads[1], late], scn


def test_a_thread_that_was_enabled_later_has_nothing_before_its_first_log(
    threads: Mapping[int, list[ArchivedLog]],
) -> None:
    logs, scn = first_of_two(threads, 1, 1)
    check_beginning(logs, scn)


@pytest.mark.parametrize("sequence", [1, 2])
def test_a_thread_whose_first_logs_are_gone(
    threads: Mapping[int, list[ArchivedLog]], sequence: int
) -> None:
    """Sequence 1 is no proof: with a new incarnation every thread begins there again."""
    begin = threads[2][2].header.first_scn
    logs, scn = first_of_two(threads, sequence, begin if sequence == 1 else 1)
    with pytest.raises(OlrPgError) as caught:
        check_beginning(logs, scn)
    assert caught.value.code == 2010
    assert caught.value.where["thread"] == 2
