"""Offsets come back out of a checkpoint as they went in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from olr_pg.datasource.ownership import Place
from olr_pg.datasource.stream_offset import BEGINNING, StreamOffset, ThreadOffset, parse_offset
from olr_pg.errors import Code, OlrPgError


@pytest.mark.parametrize(
    "offset",
    [
        BEGINNING,
        StreamOffset(7, 9, {1: ThreadOffset(Place(3, 2), 2), 12: ThreadOffset(Place(4, 5), 4)}),
    ],
)
def test_an_offset_comes_back(offset: StreamOffset) -> None:
    assert parse_offset(json.loads(json.dumps(offset.as_json()))) == offset


@pytest.mark.parametrize(
    "other", [{}, {"index": 3}, {"incarnation": 1, "scn": 2, "threads": []}, 7]
)
def test_what_is_no_offset_is_refused(other: Any) -> None:
    with pytest.raises(OlrPgError) as caught:
        parse_offset(other)
    assert caught.value.code == Code.STREAM_OFFSET
