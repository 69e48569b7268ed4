"""``olr-pg doctor`` of an offline source: what the dictionary tells of supplemental logging."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.appliance.offline_logging import check_encryption, check_supplemental
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.dictionary.snapshot_file import dump_snapshot
from olr_pg.dictionary.sys_rows import SysRows
from olr_pg.observability.findings import Severity

if TYPE_CHECKING:
    from pathlib import Path

KEYED = Table("S", "KEYED", 10, 10, (Column("ID", 1, 1, 1, 2, 22),), key_kind=KeyKind.PRIMARY,
              key=(1,))  # fmt: skip
KEYLESS = replace(KEYED, name="KEYLESS", obj=11, dataobj=11, key_kind=KeyKind.NONE, key=())
EMPTY: dict[str, Any] = {
    name: [] for name, field in SysRows.model_fields.items() if field.is_required()
}
OWNER = {"user": 5, "name": "S"}
TOLD = {"supp-log-db-min": 1, "supp-log-db-primary": 0, "supp-log-db-all": 0}


def rows(**changes: Any) -> SysRows:
    return SysRows.model_validate({**EMPTY, "sys_user": [OWNER], **changes})


def told(**changes: int) -> dict[str, int]:
    return {**TOLD, **{f"supp-log-db-{name}": level for name, level in changes.items()}}


def found(sys_rows: SysRows | None) -> list[tuple[Severity, str]]:
    snapshot = Snapshot(1, Database("TEST"), (KEYED, KEYLESS), sys_rows)
    findings = list(check_supplemental(snapshot, snapshot.tables))
    assert {one.check for one in findings} <= {"offline.supplemental"}
    return [(one.severity, one.mend[0]) for one in findings]


def statement(name: str, level: str) -> tuple[Severity, str]:
    text = f'ALTER TABLE "S"."{name}" ADD SUPPLEMENTAL LOG DATA ({level}) COLUMNS;'
    return Severity.ERROR, text


BOTH = [statement("KEYED", "PRIMARY KEY"), statement("KEYLESS", "ALL")]


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        (told(), BOTH),
        (told(primary=1), BOTH[1:]),
        (told(all=1), []),
        (told() | {"sys_user": [{**OWNER, "spare1": 8}]}, []),
        (told() | {"sys_user": [{**OWNER, "spare1": 1}]}, BOTH[1:]),
        (told() | {"sys_cdef": [{"con": 1, "obj": 10, "type": 14}]}, BOTH[1:]),
        (told() | {"sys_cdef": [{"con": 1, "obj": 11, "type": 17}]}, BOTH[:1]),
        (
            told()
            | {
                "sys_cdef": [{"con": 1, "obj": 10, "type": 12}],
                "sys_ccol": [{"con": 1, "obj": 10, "int-col": 1}],
            },
            BOTH[1:],
        ),
    ],
)
def test_every_level_counts(changes: dict[str, Any], wanted: list[tuple[Severity, str]]) -> None:
    assert found(rows(**changes)) == wanted


def test_without_minimal_logging_nothing_else_counts() -> None:
    assert found(rows(**told(min=0, all=1))) == [
        (Severity.ERROR, "ALTER DATABASE ADD SUPPLEMENTAL LOG DATA;")
    ]


def test_what_the_dictionary_does_not_tell_is_asked_for() -> None:
    ((severity, mend),) = found(rows())
    assert severity is Severity.WARNING
    assert "FROM V$DATABASE" in mend
    assert found(None) == []


def test_the_levels_are_kept_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "dictionary.json"
    snapshot = Snapshot(1, Database("TEST"), (KEYED,), rows(**told(primary=1)))
    path.write_bytes(dump_snapshot(snapshot))
    assert load_snapshot(str(path)) == snapshot


PLACES = {"obj": 10, "data-obj": 10, "clu-cols": 0, "flags": 0, "property": 0}
USERS = {"ts": 4, "name": "USERS", "block-size": 8192, "state": 1}


@pytest.mark.parametrize(
    ("sys_rows", "is_said"),
    [
        (None, False),
        (rows(sys_tab=[PLACES | {"ts": 4}], sys_ts=[USERS | {"flags": 0}]), False),
        # As an older version wrote it, and as a schema checkpoint is.
        (rows(sys_tab=[PLACES], sys_ts=[USERS]), True),
        (rows(sys_tab=[PLACES | {"ts": 4}]), True),
    ],
)
def test_a_dictionary_that_does_not_tell_of_encryption(
    sys_rows: SysRows | None, is_said: bool
) -> None:
    found = list(check_encryption(Snapshot(1, Database("TEST"), (KEYED,), sys_rows)))
    assert [(one.check, one.severity) for one in found] == (
        [("offline.encryption", Severity.WARNING)] if is_said else []
    )
