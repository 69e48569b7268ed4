"""No case of the shared vectors is left out: each is in the hands of exactly one test.

But values of encrypted columns, which are left out by name: the keys of tables are not to be had.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Final

import pytest

from olr_pg.dictionary.model import unsupported_reason
from tests.redo import test_direct, test_lob_pieces
from tests.vectors import test_rollback_rows, test_row_changes, test_values
from tests.vectors.redo_cases import vectors_dir

ENCRYPTED: Final = "OraCdcTdeColumnDecrypterTest-"
"""Values of encrypted columns."""


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
            *(f"OraCdcRollback-{case['case']}" for case in test_rollback_rows.cases()),
            *(f"values-{entry['id']}" for entry in test_values.VALUES),
        ]
    )
    unread = {name for name in folder if name.startswith(ENCRYPTED)}
    assert set(tested) == folder - unread
    assert set(tested.values()) == {1}
    assert {entry["type"] for entry in test_values.VALUES} == set(test_values.CHECKS)


def test_a_column_whose_values_stay_unread_is_left_out() -> None:
    reason = unsupported_reason(1, virtual=False, encrypted=True, lob_encrypted=False)
    assert reason == "the column is encrypted (TDE)"
