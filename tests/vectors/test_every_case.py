"""No case of the shared vectors is left out: each is in the hands of exactly one test."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.datatypes import test_tde
from tests.redo import test_direct, test_lob_pieces
from tests.vectors import (
    test_rollback_rows,
    test_row_changes,
    test_values,
)
from tests.vectors.redo_cases import vectors_dir


def cases_in_the_folder() -> set[str]:
    found = set()
    for path in vectors_dir().glob("*.json"):
        document = json.loads(path.read_text("utf-8"))
        if "values" in document:
            found |= {f"{path.stem}-{entry['id']}" for entry in document["values"]}
        else:
            found |= {f"{path.stem}-{case['case']}" for case in document["cases"]}
    return found


def test_every_case_is_tested_once() -> None:
    folder = cases_in_the_folder()
    if not folder:
        pytest.skip(f"no vectors here: {vectors_dir()} (set OLR_PG_VECTORS)")
    tested = Counter(
        [
            *(name for name, _ in test_row_changes.row_cases()),
            *(name for name, _ in test_direct.CASES),
            *(name for name, _ in test_lob_pieces.CASES),
            *(f"OraCdcTdeColumnDecrypterTest-{case['case']}" for case in test_tde.CASES),
            *(f"OraCdcRollback-{case['case']}" for case in test_rollback_rows.cases()),
            *(f"values-{entry['id']}" for entry in test_values.VALUES),
        ]
    )
    assert set(tested) == folder
    assert set(tested.values()) == {1}
    assert {entry["type"] for entry in test_values.VALUES} == set(test_values.CHECKS)
