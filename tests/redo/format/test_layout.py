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
