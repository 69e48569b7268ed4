"""Every real record case of the shared vectors gives its expected changes."""

from __future__ import annotations

import copy

import pytest

from tests.vectors.redo_cases import (
    Case,
    Change,
    assemble_case,
    decode_case,
    load_cases,
    parse_rba,
    vectors_dir,
)

CASES = load_cases()
ROW_OPS = {
    "11.2",
    "11.3",
    "11.4",
    "11.5",
    "11.6",
    "11.8",
    "11.11",
    "11.12",
    "11.16",
    "11.22",
    "10.2",
    "10.4",
    "10.18",
    "10.30",
    "10.35",
}


def row_cases() -> list[tuple[str, Case]]:
    return [
        (name, case)
        for name, case in CASES
        if not {
            vector["op"]
            for record in case["records"]
            for vector in record["vectors"]
            if not vector["op"].startswith("5.")
        }
        - ROW_OPS
    ]


def test_the_vectors_are_here() -> None:
    if not vectors_dir().is_dir():
        pytest.skip(f"no real redo records here: {vectors_dir()} (set OLR_PG_VECTORS)")
    assert CASES


@pytest.mark.parametrize(("name", "case"), row_cases(), ids=[name for name, _ in row_cases()])
def test_row_changes(name: str, case: Case) -> None:
    changes, assembler = decode_case(case)
    expected = [entry for entry in case["expected"] if entry["kind"] == "row_change"]
    assert len(changes) == len(expected)
    records = {record["id"]: record for record in case["records"]}
    for change, entry in zip(changes, expected, strict=True):
        _check(change, entry)
        assert parse_rba(records[change.record]["rba"]) == parse_rba(entry["rba"])
        assert change.scn == records[change.record]["scn"]
    undone = [entry for entry in case["expected"] if entry["kind"] == "rolled_back_change"]
    assert bool(assembler.account.undone) == bool(undone)
    assert assembler.account.unmatched == 0


def _check(change: Change, entry: Case) -> None:
    assert change.operation == entry["operation"]
    assert (change.rowid or None) == entry["rowid"]
    assert change.object_id == entry["object_id"]
    facts = dict(entry["derived"])
    facts.update(entry.get("asserted", {}).get("logminer", {}))
    # Index-organised tables: the vectors tell key and old values apart.
    after = _numbers(facts.get("set", facts.get("values", facts.get("after", {}))))
    before = _numbers(facts.get("where", {**facts.get("key", {}), **facts.get("before", {})}))
    if change.operation == "UPDATE":
        assert change.after == after
        assert change.before == before
    else:
        # A whole row has every column of the table; what the record does not mention is NULL.
        assert _not_null(change.after) == _not_null(after)
        assert _not_null(change.before) == _not_null(before)
        assert {*after, *before} <= {*change.after, *change.before}


def _numbers(columns: dict[str, str | None]) -> dict[int, str | None]:
    return {int(number): value for number, value in columns.items()}


def _not_null(columns: dict[int, str | None]) -> dict[int, str | None]:
    return {number: value for number, value in columns.items() if value is not None}


def test_a_leaf_row_with_an_overflow_piece_is_refused() -> None:
    """A real 10.30 whose row is made to go on elsewhere (fb without L)."""
    found = [case for name, case in CASES if name.startswith("Op10_30")]
    if not found:
        pytest.skip(f"no real redo records here: {vectors_dir()} (set OLR_PG_VECTORS)")
    case = copy.deepcopy(found[0])
    (record,) = case["records"]
    assert record["hex"].count("2c01040b") == 1
    record["hex"] = record["hex"].replace("2c01040b", "2801040b")
    finished, assembler, _, _ = assemble_case(case)
    assert finished is not None
    assert finished.dml.kind.size == 0
    (fault,) = finished.faults
    assert fault.error.code == 2062
    assert assembler.account.undecoded == 1
