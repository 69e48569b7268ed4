"""Sequences give each value once, until there are no more."""

from __future__ import annotations

import pytest

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.name_scopes import SqlSequence


def test_values() -> None:
    found = SqlSequence("S", following=5, increment=10, maximum=20)
    assert [found.take(), found.take()] == [5, 15]
    with pytest.raises(OraError, match="ORA-08004"):
        found.take()
