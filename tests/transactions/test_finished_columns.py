"""The columns of finished transactions agree with what reads them."""

from __future__ import annotations

from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.wire.elements import ElementCode
from tests.transactions.dml_model import Change, dml_of


def test_kinds_are_the_codes_of_the_protocol() -> None:
    assert {kind.name: int(kind) for kind in DmlKind} == {
        name: int(ElementCode[name]) for name in ("INSERT", "DELETE", "UPDATE")
    }


def test_entries_are_the_values_that_changes_begin_with() -> None:
    changes = [
        Change(DmlKind.INSERT, after={0: b"a", 1: None}),
        Change(DmlKind.UPDATE, before={0: b"a"}, after={1: b"long"}),
    ]
    dml = dml_of(changes, parts={3: b"er"})
    assert dml.values.size == 5
    assert dml.entries.column.tolist() == [0, 1, 0, 1]
    assert dml_of([]).entries.size == 0
