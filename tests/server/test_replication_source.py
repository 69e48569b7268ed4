"""Which recovery image may take the place of the redo before it."""

from __future__ import annotations

import pytest

from olr_pg.server.replication_source import RecoveryPoint

POINT = RecoveryPoint("image", commit_scn=100, read_scn=90, whole_scn=20)


@pytest.mark.parametrize(
    ("start_scn", "unconfirmed_scn", "serves"),
    [
        (50, None, True),
        (50, 101, True),
        (50, 100, False),
        (19, None, False),
        (20, None, True),
        (89, None, True),
        (90, None, False),
    ],
    ids=[
        "all is confirmed",
        "what is not confirmed commits behind it",
        "something in front of it is not confirmed",
        "a transaction may lack its begin",
        "the first that has its begin",
        "there is redo to save",
        "the start lies behind it",
    ],
)
def test_an_image_serves_whom_nothing_is_lacking(
    start_scn: int, unconfirmed_scn: int | None, serves: bool
) -> None:
    assert POINT.serves(start_scn, unconfirmed_scn) is serves
