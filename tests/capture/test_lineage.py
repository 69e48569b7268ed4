"""What was delivered from an incarnation that the source has given up stops a start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.capture.lineage import FILE_NAME, Lineage
from olr_pg.errors import Code, OlrPgError
from olr_pg.transactions.schema_event import Incarnation

if TYPE_CHECKING:
    from pathlib import Path

PARENT, CHILD = Incarnation(100, 1), Incarnation(200, 5_000)


@pytest.mark.parametrize("delivered", [4_999, 5_000, 5_001])
def test_a_resetlogs_behind_what_was_delivered(tmp_path: Path, delivered: int) -> None:
    path = tmp_path / FILE_NAME
    before = Lineage(path)
    before.follow([PARENT])
    before.delivered(delivered)
    again = Lineage(path)
    if delivered > CHILD.resetlogs_scn:
        with pytest.raises(OlrPgError) as caught:
            again.follow([CHILD, PARENT])
        assert caught.value.code == Code.RESETLOGS_BEHIND_DELIVERED
    else:
        again.follow([CHILD, PARENT])
        assert (again.end_of(100), again.end_of(200)) == (5_000, None)


def test_logs_alone_tell_the_same(tmp_path: Path) -> None:
    lineage = Lineage(tmp_path / FILE_NAME)
    lineage.follow_logs([(100, 1)])
    lineage.delivered(6_000)
    with pytest.raises(OlrPgError) as caught:
        lineage.follow_logs([(100, 1), (200, 5_000)])
    assert caught.value.code == Code.RESETLOGS_BEHIND_DELIVERED


def test_an_incarnation_without_logs_still_ends_its_parent(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    # An earlier release did not store where it began; that is known when its logs are seen again.
    path.write_text('{"resetlogs": 200, "delivered_scn": 6000}')
    again = Lineage(path)
    again.follow_logs([(100, 1)])
    assert again.end_of(100) is None
    again.follow_logs([(100, 1), (200, 5_000)])
    last = Lineage(path)
    last.follow_logs([(100, 1)])
    assert (last.end_of(100), last.end_of(200)) == (5_000, None)
    assert last.ancestry is not None
    assert last.ancestry.current == CHILD
    with pytest.raises(OlrPgError):
        last.follow_logs([(100, 1), (300, 5_999)])


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_text('{"version": 3, "resetlogs": 1, "delivered_scn": 0}')
    with pytest.raises(OlrPgError) as caught:
        Lineage(path)
    assert caught.value.code == Code.FILE_OF_NEWER_VERSION
