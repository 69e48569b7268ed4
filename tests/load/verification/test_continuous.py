"""Continuous verification: table by table, and once more where something differs."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.config.table_sections import Filter
from olr_pg.decoding.filters import filters_of
from olr_pg.errors import Code, OlrPgError
from olr_pg.load import sources
from olr_pg.load.verification.continuous import (
    LAG_SECONDS,
    PAUSE_SECONDS_MIN,
    Budget,
    ContinuousVerification,
    Mending,
    confirmed,
)
from olr_pg.load.verification.verification import DIFFERENT, EXTRA, MISSING, RowDifference
from olr_pg.monitor.proofs import FILE_NAME, Proof, ProofFile, read_proofs, write_proofs
from tests.advice import followed
from tests.load.verification.damaged import check_seed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.load.conftest import Project


def verification(
    project: Project, mending: Mending | None = None, pauses: list[float] | None = None
) -> ContinuousVerification:
    config = project.config()
    snapshot = sources.read_dictionary(config)
    settings = sources.target_settings(config, snapshot, project.database)
    with sources.open_tables(config) as source:
        pause = ([] if pauses is None else pauses).append
        return ContinuousVerification(
            settings, source, project.folder, project.session, mending, pause
        )


def walk(project: Project, count: int, share: float = 0.5) -> list[Proof]:
    pauses = list[float]()
    one = verification(project, pauses=pauses)
    tables = one._source.choose(())
    return list(islice(one.walk(tables, Budget(share)), count))


def loaded(project: Project) -> None:
    project.tables = project.source.write_tables(project.folder / "tables", project.source.scn(0.7))
    project.load()


def test_every_table_is_compared_in_turn_and_what_differs_is_counted(project: Project) -> None:
    loaded(project)
    first = walk(project, 3)
    names = [proof.table for proof in first]
    assert len(set(names)) == 3
    assert all(proof.is_equal and proof.scn and proof.rows for proof in first)
    with psycopg.connect(project.database) as connection:
        connection.execute("DELETE FROM shop.orders WHERE order_id IN"
                           " (SELECT order_id FROM shop.orders ORDER BY 1 LIMIT 2)")  # fmt: skip
    again = walk(project, 3)
    assert [proof.table for proof in again] == names  # longest ago first, also after a restart
    differing = {proof.table: proof.differences for proof in again if not proof.is_equal}
    assert differing == {"SHOP.ORDERS": 2}
    assert read_proofs(project.folder / FILE_NAME) == {proof.table: proof for proof in again}


def test_a_comparison_in_the_future_keeps_no_table_waiting(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the machine was wrong for a time."""
    loaded(project)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 20 * 365 * 86_400)
    (first,) = walk(project, 1)
    monkeypatch.setattr(time, "time", real)
    assert walk(project, 1)[0].table == first.table
    assert len({proof.table for proof in walk(project, 2)} | {first.table}) == 3


def test_a_table_that_cannot_be_compared_keeps_its_proof_and_does_not_keep_the_others(
    project: Project,
) -> None:
    loaded(project)
    before = {proof.table: proof for proof in walk(project, 3)}
    with psycopg.connect(project.database) as connection:
        connection.execute("ALTER TABLE shop.orders RENAME TO elsewhere")
    after = {proof.table: proof for proof in walk(project, 3)}
    failed = after["SHOP.ORDERS"]
    assert "OLR-05005" in failed.failure
    assert not failed.is_equal
    assert (failed.scn, failed.at) == (before["SHOP.ORDERS"].scn, before["SHOP.ORDERS"].at)
    assert failed.tried_at > failed.at
    assert all(proof.is_equal for name, proof in after.items() if name != "SHOP.ORDERS")


def test_rows_are_mended_up_to_a_bound_and_past_it_none_any_more(project: Project) -> None:
    loaded(project)
    remove = (
        "DELETE FROM shop.orders WHERE order_id IN"
        " (SELECT order_id FROM shop.orders ORDER BY 1 LIMIT %s)"
    )
    one = verification(project, Mending(3))
    orders = next(t for t in one._source.choose(()) if t.full_name == "SHOP.ORDERS")
    with psycopg.connect(project.database, autocommit=True) as connection:
        connection.execute(remove, (2,))
        proof = one.prove(orders)
        assert (proof.mended, proof.differences, proof.is_equal) == (2, 0, True)
        assert one.prove(orders).mended == 0
        connection.execute(remove, (2,))  # with those before it would be four in an hour
        with capture_logs() as logs:
            proof = one.prove(orders)
            assert one.prove(orders).differences == 2
        assert (proof.mended, proof.differences) == (0, 2)
        assert [entry["code"] for entry in logs if entry["log_level"] == "error"] == ["OLR-05117"]
        connection.execute(remove, (5,))
        assert verification(project, Mending(3)).prove(orders).mended == 0  # and so on for ever
        followed(
            OlrPgError(Code.MENDING_ENDED, ""), Code.MENDING_ENDED, "stop these changes",
            "`olr-pg repair --differences FILE --yes`", "Then start the verification",
        )  # fmt: skip
        project.repair(project.verify())
        connection.execute(remove, (3,))
        assert verification(project, Mending(3)).prove(orders).mended == 3


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        (EXTRA, {"filter": {"operations": {"SHOP.*": ["delete"]}}}),
        (EXTRA, {"apply": {"ddl": {"drop-partition": "ignore"}}}),
        (MISSING, {"filter": {"operations": {"SHOP.ORDERS": ["insert", "update"]}}}),
        (DIFFERENT, {"filter": {"transactions": {"login-users": ["ETL_*"]}}}),
    ],
)
def test_rows_that_the_configuration_keeps_different_are_not_mended(
    project: Project, kind: str, config: dict[str, Any]
) -> None:
    """Rows that the source has deleted, and the target keeps as a history, for example."""
    loaded(project)
    statement = {
        EXTRA: "INSERT INTO shop.orders SELECT (jsonb_populate_record(o,"
        " jsonb_build_object('order_id', -1))).* FROM shop.orders AS o LIMIT 1",
        MISSING: "DELETE FROM shop.orders WHERE order_id = (SELECT min(order_id) FROM shop.orders)",
        DIFFERENT: "UPDATE shop.orders SET status = 'x' WHERE order_id ="
        " (SELECT min(order_id) FROM shop.orders)",
    }[kind]
    with psycopg.connect(project.database) as connection:
        assert connection.execute(statement.encode()).rowcount == 1
    project.apply = config.get("apply", {})
    filters = filters_of(Filter.model_validate(config.get("filter", {})))
    one = verification(project, Mending(3, filters))
    orders = next(t for t in one._source.choose(()) if t.full_name == "SHOP.ORDERS")
    proof = one.prove(orders)
    assert (proof.mended, proof.differences) == (0, 1)
    project.apply = {}
    proof = verification(project, Mending(3)).prove(orders)
    assert (proof.mended, proof.differences) == (1, 0)


def test_the_bound_is_that_of_an_hour() -> None:
    mending = Mending(10)
    assert mending.may_mend(10, 0.0)
    mending.note(10, 0.0)
    assert mending.may_mend(10, 3600.0)
    assert not mending.may_mend(11, 3600.0)
    assert not mending.may_mend(1, 9000.0)  # somebody has to look


def test_nothing_is_compared_while_replication_lags(project: Project) -> None:
    loaded(project)
    pauses = list[float]()
    one = verification(project, pauses=pauses)
    lags = iter([90, 0, 60, 70, 0])
    walked = one.walk(one._source.choose(()), Budget(1.0), lag=lambda: next(lags))
    assert len(list(islice(walked, 2))) == 2
    assert pauses == [LAG_SECONDS] * 3  # one before the first, two before the second
    with pytest.raises(StopIteration):
        next(lags)


@pytest.mark.parametrize(
    ("lag", "share"), [(0, 0.2), (15, 0.15), (30, 0.1), (59.9, 0.0003), (60, 0), (999, 0)]
)
def test_the_share_falls_with_the_lag(lag: float, share: float) -> None:
    assert Budget(0.2, None, 60.0).share_at(lag) == pytest.approx(share, abs=1e-4)


def pauses_for(budget: Budget, busy: float, rows: int, lags: list[float]) -> list[float]:
    """Of a step that took so many seconds, while replication lags so; the last lag stays."""
    pauses = list[float]()
    one = object.__new__(ContinuousVerification)
    one._pause, one._compared_rows = pauses.append, rows
    one._rest(budget, busy, lambda: lags.pop(0) if len(lags) > 1 else lags[0])
    return pauses


def test_pauses_keep_the_budget_of_time_and_of_rows() -> None:
    assert sum(pauses_for(Budget(0.1), 2.0, 0, [0])) == pytest.approx(18.0)
    assert pauses_for(Budget(1.0), 2.0, 0, [0]) == [PAUSE_SECONDS_MIN]
    assert sum(pauses_for(Budget(0.5, 100), 2.0, 1000, [0])) == pytest.approx(8.0)
    # Half of the share while it lags by half of what is allowed; nothing is paid off beyond it.
    assert sum(pauses_for(Budget(0.5), 1.0, 0, [30])) == pytest.approx(3.0)
    assert pauses_for(Budget(0.5), 1.0, 0, [60, 60, 0]) == [LAG_SECONDS, LAG_SECONDS, 1.0]


@pytest.mark.parametrize("seed", [0])
def test_random_damage_is_found_and_mended(
    tmp_path: Path, seed: int, postgres_database: str
) -> None:
    """Many more: `tests.load.verification.damaged`, and `live_histories` beside a running one."""
    assert check_seed(seed, tmp_path, postgres_database).fault == ""


def test_only_what_differs_twice_is_told() -> None:
    gone = RowDifference(DIFFERENT, b"1", b"a", b"b")
    stays = RowDifference(MISSING, b"2", b"a", None)
    later = stays._replace(source=b"c")
    new = RowDifference(EXTRA, b"1", None, b"b")
    assert confirmed([gone, stays], [later, new]) == (later,)


def test_proofs_are_read_anew_where_they_were_written_anew(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    file = ProofFile(path)
    assert file.read() == {}
    for scn in (7, 8):
        proof = Proof("A.B", scn, 1.5, 10)
        write_proofs(path, [proof])
        assert file.read() == {"A.B": proof}
    path.write_bytes(b"{")
    assert read_proofs(path) == {}
