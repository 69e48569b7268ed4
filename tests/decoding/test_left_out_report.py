"""What is lost is said once for each column and kind, with its code."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from olr_pg.decoding.left_out_report import LossReporter, report_left_out
from olr_pg.dictionary.decoding_plan import build_row_plan
from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.uninterpreted import PassedVector
from olr_pg.transactions.lobs.assembly import LobLosses, no_losses
from tests.lobs.lob_redo import table

if TYPE_CHECKING:
    from collections.abc import Callable

DOCS = table()
TEXT, IMAGE = 1, 2


def losses(**counts: dict[int, int]) -> LobLosses:
    """Losses of ``APP.DOCS`` by kind and number."""
    found = no_losses(build_row_plan([DOCS], 0))
    for kind, numbers in counts.items():
        for number, count in numbers.items():
            getattr(found, kind)[number] = count
    return found


def said(report: Callable[[], None]) -> list[tuple[str, Any, Any]]:
    """(code, table, column) of each warning."""
    with capture_logs() as logs:
        report()
    assert all(entry["log_level"] == "warning" for entry in logs)
    return [(entry["code"], entry.get("table"), entry.get("column")) for entry in logs]


@pytest.mark.parametrize(
    ("kind", "code"),
    [("missing", 2120), ("malformed", 2122), ("undecoded", 2123)],
)
def test_each_kind_of_loss_has_its_code(kind: str, code: int) -> None:
    found = losses(**{kind: {TEXT: 4}})
    assert said(lambda: LossReporter([DOCS]).report(found)) == [
        (f"OLR-{code:05d}", "APP.DOCS", "TEXT")
    ]


def test_a_loss_is_said_once_and_another_column_by_itself() -> None:
    reporter = LossReporter([DOCS])
    assert len(said(lambda: reporter.report(losses(missing={TEXT: 1})))) == 1
    again = losses(missing={TEXT: 9, IMAGE: 1})
    assert [column for *_, column in said(lambda: reporter.report(again))] == ["IMAGE"]
    # Also by the reporter of the next subscription.
    other = reporter.for_tables([replace(DOCS, name="OTHER"), DOCS])
    moved = no_losses(build_row_plan([DOCS, DOCS], 0))
    moved.missing[3 + TEXT] = moved.missing[TEXT] = 1
    assert said(lambda: other.report(moved)) == [("OLR-02120", "APP.OTHER", "TEXT")]


def test_lobs_without_a_row_are_a_loss_of_their_table() -> None:
    reporter = LossReporter([DOCS])
    assert said(lambda: reporter.report(losses(unclaimed={0: 2}))) == [
        ("OLR-02121", "APP.DOCS", None)
    ]
    assert said(lambda: reporter.report(losses())) == []


def test_vectors_that_nothing_interprets_are_said_by_kind_and_table() -> None:
    one = PassedVector(0x0A23, 0, 72_726, 5 << 48, 900, (1, 2, 3, 16))
    reporter = LossReporter([DOCS])
    found = said(lambda: reporter.report_passed([one, one, one._replace(opcode=0x0A24)]))
    assert [(code, name) for code, name, _ in found] == [("OLR-02142", "APP.DOCS")] * 2


def test_vectors_that_name_no_object_are_said_by_kind_without_a_table() -> None:
    one = PassedVector(0x1B40, -1, 0, 0, 900, (1, 2, 3, 16))
    reporter = LossReporter([DOCS])
    with capture_logs() as logs:
        reporter.report_passed([one, one._replace(scn=901), one._replace(opcode=0x1C01)])
        reporter.for_tables([DOCS]).report_passed([one])
    assert [(log["code"], log["vector"]) for log in logs] == [
        ("OLR-02146", "27.64 block change tracking"), ("OLR-02146", "28.1 unknown")
    ]  # fmt: skip
    assert (logs[0]["sequence"], logs[0]["block"], logs[0]["scn"]) == (2, 3, 900)
    assert not {"table", "object"} & logs[0].keys()


def test_pages_that_the_source_gives_are_said_by_column() -> None:
    reporter = LossReporter([DOCS])
    error = OlrPgError(Code.LOB_PAGES_WITHOUT_REDO, "x", table="APP.DOCS", column="TEXT")
    assert len(said(lambda: reporter.report_fetched(error))) == 1
    assert said(lambda: reporter.report_fetched(error)) == []


def test_columns_that_nobody_gets_are_said_with_their_reason() -> None:
    columns = (*DOCS.columns, replace(DOCS.columns[0], name="GEO", type_code=121))
    odd = replace(DOCS, columns=columns)
    with capture_logs() as logs:
        report_left_out([DOCS, odd])
    (entry,) = logs
    assert (entry["code"], entry["column"]) == (f"OLR-{Code.COLUMN_LEFT_OUT:05d}", "GEO")
    assert entry["reason"] == columns[-1].unsupported
