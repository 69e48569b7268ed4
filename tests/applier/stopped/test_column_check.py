"""A target table that somebody alters beside a running applier."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.batches.slices import Slices
from olr_pg.applier.batches.stream_applier import StreamApplier
from olr_pg.applier.batches.table_applier import TableApplier
from olr_pg.applier.stopped.column_check import PLANS_MAX, TargetAlteredError, TargetShape
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.datatypes.number import encode_number
from olr_pg.errors import OlrPgError
from olr_pg.wire.elements import ColumnValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.statements.table_changes import Selection

Replication = Any  # tests/applier/conftest.py
Applier = TableApplier | StreamApplier

# The composite type has v and w in the other order then.
SWAP = """
ALTER TABLE s.c ADD v2 varchar(40); UPDATE s.c SET v2 = v;
ALTER TABLE s.c DROP v; ALTER TABLE s.c RENAME v2 TO v"""
RECREATE = """
ALTER TABLE s.c RENAME TO old; CREATE TABLE s.c (id int PRIMARY KEY, w text, v text);
INSERT INTO s.c SELECT id, w, v FROM s.old"""


ALTERED = "the target table was altered: preparing its statements again"


@pytest.fixture(params=["table", "stream"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which applier."""
    return str(request.param)


@pytest.fixture
def target(replication: Replication) -> Iterator[Connection[Any]]:
    """The applier's connection; there is a table ``s.c (id, v, w)``."""
    replication.execute("CREATE TABLE s.c (id int PRIMARY KEY, v varchar(20), w varchar(20))")
    with connect(replication.target) as connection:
        ensure_ledger(connection)
        yield connection


def _applier(kind: str, settings: ApplierSettings) -> Applier:
    if kind == "stream":
        return StreamApplier(settings, {})
    return TableApplier("S.C", settings, None)


def _halfway(r: Replication, target: Connection[Any], kind: str, copy_rows: int) -> Applier:
    """An applier that has applied the first of two batches of three rows."""
    r.transaction(*(r.insert(_row(n), "C") for n in range(3)))
    r.transaction(*(r.insert(_row(n), "C") for n in range(3, 6)))
    applier = _applier(kind, r.settings(copy_rows=copy_rows))
    applier.apply(target, r.selection(0, 1))
    return applier


def _row(number: int) -> dict[str, Any]:
    return {"ID": number, "V": f"v{number}", "W": f"w{number}"}


def _expected(numbers: range) -> list[tuple[int, str, str]]:
    return [(number, f"v{number}", f"w{number}") for number in numbers]


def _rows(r: Replication) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = r.rows("SELECT id, v, w FROM s.c ORDER BY id")
    return found


def _why_ended(
    applier: Applier, target: Connection[Any], changes: Selection, *, sliced: bool = False
) -> str:
    """Why the table stops with these changes, or the run."""
    apply = partial(applier.apply_slices, target, Sliced(changes)) if sliced else partial(
        applier.apply, target, changes
    )  # fmt: skip
    if isinstance(applier, TableApplier):
        apply()
        return str(applier.error)
    with pytest.raises(OlrPgError) as caught:
        apply()
    return caught.value.detail


class Sliced:
    """A transaction as if it were spooled."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self.commit_scn = int(selection.commit_scn[0])
        self.xid = int(selection.xid[0])
        self.size = 1

    def read(self, changes_max: int, bytes_max: int) -> Iterator[Selection]:
        for at in range(0, len(self._selection), changes_max):
            yield self._selection.part(slice(at, at + changes_max))


def test_values_go_into_the_columns_of_their_names(
    replication: Replication, target: Connection[Any], kind: str
) -> None:
    r = replication
    r.transaction(r.insert(_row(1), "C"), r.insert({"ID": 2, "V": "-", "W": "-"}, "C"))
    r.transaction(r.insert(_row(3), "C"), r.update({"ID": 2}, {"V": "v2", "W": "w2"}, "C"))
    applier = _applier(kind, r.settings())
    applier.apply(target, r.selection(0, 1))
    r.execute(SWAP)
    with capture_logs() as entries:
        applier.apply(target, r.selection(1, 2))
    assert _rows(r) == _expected(range(1, 4))
    (entry,) = entries
    assert (entry["log_level"], entry["event"]) == ("info", ALTERED)
    assert r.rows("SELECT count(*) FROM olr_pg.error") == [(0,)]


@pytest.mark.parametrize("copy_rows", [1, 1000])
def test_altered_while_a_batch_waits_for_the_table(
    replication: Replication, target: Connection[Any], kind: str, copy_rows: int
) -> None:
    r = replication
    applier = _halfway(r, target, kind, copy_rows)
    thread = threading.Thread(target=applier.apply, args=(target, r.selection(1, 2)))
    with psycopg.connect(r.target) as other, capture_logs() as entries:
        other.execute(SWAP)
        thread.start()
        r.wait_for("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted")
        other.commit()
        thread.join()
    assert _rows(r) == _expected(range(6))
    assert ALTERED in [one["event"] for one in entries]


def test_a_table_that_an_operator_exchanges_by_the_steps_of_the_page(
    replication: Replication, target: Connection[Any], kind: str
) -> None:
    """Of target-tables.md."""
    r = replication
    r.transaction(r.insert(_row(1), "C"))
    r.transaction(r.insert(_row(2), "C"))
    applier = _applier(kind, r.settings())
    applier.apply(target, r.selection(0, 1))
    r.execute(
        "BEGIN; UPDATE olr_pg.ledger SET target_oid = NULL WHERE source_table = 'S.C';"
        f"LOCK TABLE s.c; {RECREATE}; COMMIT"
    )
    applier.apply(target, r.selection(1, 2))
    assert _rows(r) == _expected(range(1, 3))
    assert r.rows(
        "SELECT target_oid = 's.c'::regclass FROM olr_pg.ledger WHERE source_table = 'S.C'"
    ) == [(True,)]


@pytest.mark.parametrize("copy_rows", [1, 1000])
def test_a_table_that_takes_the_name_while_a_batch_waits_is_refused(
    replication: Replication, target: Connection[Any], kind: str, copy_rows: int
) -> None:
    """Nobody but the operator knows if it has all rows."""
    r = replication
    applier = _halfway(r, target, kind, copy_rows)
    with psycopg.connect(r.target) as other, ThreadPoolExecutor(1) as pool:
        other.execute(RECREATE)
        why = pool.submit(_why_ended, applier, target, r.selection(1, 2))
        r.wait_for("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted")
        other.commit()
        assert "OLR-05046" in why.result()
    assert _rows(r) == _expected(range(3))


@pytest.mark.parametrize("copy_rows", [1, 1000])
def test_another_type_is_judged_anew(
    replication: Replication, target: Connection[Any], kind: str, copy_rows: int
) -> None:
    """PostgreSQL takes a timestamp for a timestamptz, as of some time zone."""
    r = replication
    r.execute("ALTER TABLE s.c ADD d timestamp")
    day = ColumnValue("D", 12, value=bytes.fromhex("787e0307022d28"))
    for n in range(2):
        r.transaction(*(r.insert({**_row(10 * n + i), "D": day}, "C") for i in range(3)))
    applier = _applier(kind, r.settings(copy_rows=copy_rows))
    applier.apply(target, r.selection(0, 1))
    r.execute("ALTER TABLE s.c ALTER d TYPE timestamptz USING d AT TIME ZONE 'UTC'")
    assert "OLR-05007" in _why_ended(applier, target, r.selection(1, 2))
    assert _rows(r) == _expected(range(3))


@pytest.mark.parametrize("copy_rows", [1, 1000])
def test_fewer_digits_are_judged_anew(
    replication: Replication, target: Connection[Any], kind: str, copy_rows: int
) -> None:
    """PostgreSQL rounds to them without an error."""
    r = replication
    r.execute("CREATE DOMAIN s.d AS numeric(9,2); ALTER TABLE s.c ADD p numeric(9,2), ADD d s.d")
    price = ColumnValue("P", 2, precision=9, scale=2, value=encode_number(Decimal("1.25")))
    row = {"V": None, "W": None, "P": price, "D": replace(price, name="D")}
    for n in range(3):
        r.transaction(*(r.insert({"ID": 10 * n + i, **row}, "C") for i in range(2)))
    applier = _applier(kind, r.settings(copy_rows=copy_rows))
    with capture_logs() as entries:
        applier.apply(target, r.selection(0, 1))
        applier.apply(target, r.selection(1, 2))
    assert entries == []
    r.execute("ALTER TABLE s.c ALTER p TYPE numeric(9,1) USING 0")
    assert "OLR-05007" in _why_ended(applier, target, r.selection(2, 3))
    assert r.rows("SELECT count(*), sum(p), sum(d) FROM s.c") == [(4, 0, Decimal(5))]


def test_a_column_of_the_targets_own_makes_nothing_slow(
    replication: Replication, target: Connection[Any], kind: str
) -> None:
    """Rows that go one by one have subtransactions of their own."""
    r = replication
    for batch in range(3):
        r.transaction(*(r.insert(_row(10 * batch + n), "C") for n in range(5)))
    applier = _applier(kind, r.settings())
    applier.apply(target, r.selection(0, 1))
    r.execute("ALTER TABLE s.c ADD note text")
    applier.apply(target, r.selection(1, 2))
    applier.apply(target, r.selection(2, 3))
    assert (
        r.rows("SELECT count(*), count(DISTINCT xmin::text) FROM s.c GROUP BY id / 10")
        == [(5, 1)] * 3
    )


def test_a_large_transaction_is_written_with_the_plan_of_now(
    replication: Replication, target: Connection[Any], kind: str
) -> None:
    r = replication
    r.transaction(r.insert(_row(0), "C"))
    r.transaction(*(r.insert(_row(n), "C") for n in range(1, 8)))
    applier = _applier(kind, r.settings(batch_changes=3))
    applier.apply(target, r.selection(0, 1))
    r.execute(SWAP)
    slices: Slices = Sliced(r.selection(1, 2))
    applier.apply_slices(target, slices)
    assert _rows(r) == _expected(range(8))


def test_held_changes_are_written_with_the_plan_of_now(
    replication: Replication, target: Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    r = replication
    r.execute("ALTER TABLE s.c ADD CHECK (id > 0)")
    r.transaction(r.insert(_row(0), "C"))
    r.transaction(r.insert(_row(1), "C"))
    settings = r.settings(batch_changes=1)
    applier = TableApplier("S.C", settings, None)
    applier.apply(target, r.selection())
    assert applier.error is not None
    r.execute("ALTER TABLE s.c DROP CONSTRAINT c_id_check")
    send, looks = TargetShape.send, list[bool]()

    def altered_behind_the_first(shape: TargetShape, connection: Connection[Any]) -> Any:
        cursor = send(shape, connection)
        if not looks:
            cursor = connection.execute("SELECT 'another shape'")
        looks.append(True)
        return cursor

    monkeypatch.setattr(TargetShape, "send", altered_behind_the_first)
    with capture_logs() as entries:
        assert replay(target, settings, "S.C").error is None
    assert entries[0]["event"] == "the target table was altered: preparing its statements again"
    assert _rows(r) == _expected(range(2))


def test_a_target_that_is_altered_for_ever_stops_its_table(
    replication: Replication, target: Connection[Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = replication
    r.transaction(r.insert(_row(1), "C"), r.insert(_row(2), "C"))
    looks: list[TargetShape] = []

    def compare(shape: TargetShape, _cursor: Any) -> None:
        looks.append(shape)
        raise TargetAlteredError("s.c")

    monkeypatch.setattr(TargetShape, "compare", compare)
    settings = r.settings(batch_changes=1)
    for sliced in (False, True):
        applier = _applier(kind, settings)
        looks.clear()
        r.execute("DELETE FROM olr_pg.held; DELETE FROM olr_pg.ledger")
        assert "OLR-05008" in _why_ended(applier, target, r.selection(), sliced=sliced)
        assert len(set(map(id, looks))) == PLANS_MAX
        assert _rows(r) == []
