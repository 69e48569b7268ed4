"""Lost values are put to the changes of their transaction, however it is cut into parts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from olr_pg.applier.statements.lost_value_marks import LostValueMarks
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.lost_values import LostLob
from tests.applier.conftest import Replication

if TYPE_CHECKING:
    from pathlib import Path


def lob(column: str, place: int) -> LostLob:
    return LostLob(column, 2072, "", DmlKind.INSERT, place > 0, (max(place - 1, 0), 0, 0), ())


@pytest.mark.parametrize("cuts", [[], [1], [2], [1, 2, 3]])
def test_each_goes_to_the_change_that_lacks_it(tmp_path: Path, cuts: list[int]) -> None:
    made = Replication("", tmp_path)
    made.transaction(*(made.insert({"ID": n}) for n in range(4)))
    selection = made.selection()
    marking = LostValueMarks("S.T", [lob("A", 0), lob("B", 2), lob("C", 2), lob("D", 9)], 4)
    found: dict[int, tuple[list[str], list[str]]] = {}
    edges = [0, *cuts, 4]
    for first, end in pairwise(edges):
        part = marking.mark(selection.part(slice(first, end)), np.arange(end - first))
        for at, one in part.marked().items():
            names = [one.column for one in one.before], [one.column for one in one.after]
            found[first + at] = names
    assert found == {0: (["A"], []), 1: ([], ["B", "C"]), 3: ([], ["D"])}
