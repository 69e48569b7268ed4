"""A RESETLOGS while a log is late: a part of the list of `late_logs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.oracle.late_logs import Case, Made, cases, check, make

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(900)  # the first test may compile the kernels


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("late"))


@pytest.mark.parametrize("case", cases()[5::17])
def test_the_new_incarnation_waits_for_all_of_the_one_before(
    tmp_path: Path, made: Made, case: Case
) -> None:
    check(tmp_path, made, case)
