"""What a load prints."""

from __future__ import annotations

import pytest

from olr_pg.cli.migration.load import _print_structure, losses_json
from olr_pg.datatypes.policies import Counters
from olr_pg.load.target_structure import FAILED, StructurePart


def test_policies_that_changed_nothing_are_not_listed() -> None:
    losses = {"A": Counters(truncated=3), "B": Counters()}
    assert losses_json(losses) == {"A": {"truncated": 3}, "B": {}}


def test_parts_are_counted_by_kind_and_what_failed_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = StructurePart("index", "A.B", "I1", "created")
    failed = StructurePart("index", "A.B", "I2", FAILED, "too long")
    _print_structure([made, made, failed])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["index: 2 created, 1 failed", "A.B: index I2 failed: too long"]
    assert lines[-1].startswith("initial-load does not create ")
