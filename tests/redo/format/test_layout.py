"""What the version of a log says of its layout."""

from __future__ import annotations

import pytest

from olr_pg.redo.format.layout import format_version, is_known_version, layout_of


@pytest.mark.parametrize(
    ("compat", "text", "header", "row_scn", "long_session"),
    [
        (0x0B200400, "11.2.0.4", 24, 6, False),
        (0x0C100200, "12.1.0.2", 32, 6, False),
        (0x0C200100, "12.2.0.1", 32, 8, False),
        (0x13000000, "19.0.0.0", 32, 8, True),
        (0x17060000, "23.6.0.0", 32, 8, True),
    ],
)
def test_the_layout_of_each_version(
    compat: int, text: str, header: int, row_scn: int, long_session: bool
) -> None:
    assert is_known_version(compat)
    assert format_version(compat) == text
    assert layout_of(compat, big_endian=True) == (True, header, row_scn, long_session)


@pytest.mark.parametrize("compat", [0, 0x0B100700, 0x18000000, 0x1A000000])
def test_other_versions_are_not_known(compat: int) -> None:
    assert not is_known_version(compat)


RELEASES = {
    0x0B2: (0x0000, 0x0100, 0x0200, 0x0300, 0x0400),
    0x0C1: (0x0000, 0x0100, 0x0200),
    0x0C2: (0x0000, 0x0100),
}
"""COMPATIBLE of the releases before 18, by their first twelve bits."""

UPDATES = {18: range(15), 19: range(31), 21: range(21), 23: (*range(2, 10), 26)}
"""And of those since, by release updates; 26ai is 23.26 with COMPATIBLE 23.6.0 at most."""


def test_every_value_that_a_release_since_11_2_can_have_is_read() -> None:
    old = [first << 20 | rest for first, rests in RELEASES.items() for rest in rests]
    new = [major << 24 | update << 16 for major, some in UPDATES.items() for update in some]
    assert len(old) + len(new) == 86
    assert [format_version(one) for one in (*old, *new) if not is_known_version(one)] == []
    texts = [format_version(one) for one in (*old, *new)]
    assert texts[:5] == ["11.2.0.0", "11.2.0.1", "11.2.0.2", "11.2.0.3", "11.2.0.4"]
    assert {"19.0.0.0", "23.4.0.0", "23.5.0.0", "23.6.0.0"} <= set(texts)
