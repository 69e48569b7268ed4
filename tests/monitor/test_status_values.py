"""The status as a value."""

from __future__ import annotations

from dataclasses import replace

from olr_pg.monitor.lag import Lag
from olr_pg.monitor.status_values import StageState, Status, TableStatus, overall_health
from tests.monitor.recorded_states import read_state


def with_state(status: Status, name: str, *problems: str) -> Status:
    return replace(status, state=StageState(name, 0.0), problems=problems)


def test_health_is_the_worst_of_what_there_is(status: Status) -> None:
    fine = with_state(status, "DECODING")
    worse = with_state(status, "DECODING", "a table has stopped")
    stopped = with_state(status, "STOPPED", "a table has stopped")
    assert [one.health for one in (fine, worse, stopped)] == ["ok", "degraded", "failed"]


def test_targets_fail_together_only(status: Status) -> None:
    fine, stopped = with_state(status, "DECODING"), with_state(status, "STOPPED")
    assert overall_health([fine, fine]) == "ok"
    assert overall_health([fine, stopped]) == "degraded"
    assert overall_health([stopped, stopped]) == "failed"


def test_a_single_target_has_no_name(status: Status) -> None:
    record = status.as_record()
    assert "target" not in record
    assert record["tables"][0]["lag"] == {
        "reading": 0.0,
        "decoding": 4.0,
        "queue": 2.0,
        "apply": 1.5,
    }
    named = replace(status, target="a", targets=("a", "b")).as_record()
    assert (named["target"], tuple(named["targets"])) == ("a", ("a", "b"))


def nulls(record: object, path: str = "") -> set[str]:
    """The paths of what is null."""
    if isinstance(record, dict):
        return {found for key, one in record.items() for found in nulls(one, f"{path}.{key}")}
    if isinstance(record, list | tuple):
        return {found for one in record for found in nulls(one, path)}
    return {path.removeprefix(".")} if record is None else set()


def test_what_is_not_known_is_null(status: Status) -> None:
    record = read_state("starting").as_record()
    assert nulls(record) >= {
        *("confirmed_scn", "source.decoded_scn", "port.saved_scn", "port.taken_scn"),
        *("source.oldest_open_scn", "source.oldest_open_seconds", "archive_seconds"),
        *("tables.applied_scn", "tables.held_scn", "tables.lag", "tables.lag_seconds"),
    }
    assert (record["port"]["ready"], record["tables"][0]["inserted"]) == (0, 0)
    thread = replace(status.source.threads[0], decoded_scn=None, decoded_sequence=None)
    begun = replace(status, source=replace(status.source, threads=(thread,))).as_record()
    assert nulls(begun["source"]["threads"]) == {"decoded_scn", "decoded_sequence"}
    # What is known is there: a lag of nothing, too.
    assert read_state("caught-up").as_record()["tables"][0]["lag_seconds"] == 0.0
    assert not nulls(status.as_record()["port"])


def test_a_lag_is_known_where_redo_was_seen_and_somebody_has_begun(status: Status) -> None:
    fresh = TableStatus("SHOP.T")
    begun = with_state(status, "CAUGHT_UP")
    assert begun.lag_of(fresh) == Lag()
    assert with_state(status, "STARTING").lag_of(fresh) is None
    unseen = replace(begun, archive_seconds=None, source=replace(status.source, threads=()))
    assert unseen.lag_of(fresh) is None
    stopped = replace(fresh, stopped="OLR-05008", lag_seconds=9.0, lag=Lag(apply=9.0))
    assert unseen.lag_of(stopped) == Lag(
        apply=9.0
    )  # it lacks what it holds, whatever else there is


def test_moments_are_shown_as_the_clock_has_them_and_ages_stay(status: Status) -> None:
    held = replace(status.tables[0], held_since=status.at - 50)
    source = replace(status.source, missing_since=status.at - 70)
    status = replace(status, tables=(held, *status.tables[1:]), source=source)
    assert status.moved(0.0) is status
    moved = status.moved(-3600.0)
    assert moved.at == status.at - 3600

    def ages(of: Status) -> list[float]:
        found = [of.started_at, of.state.since, *(one.archived_at for one in of.source.threads)]
        found += [of.source.missing_since or 0, of.tables[0].held_since or 0]
        return [of.at - one for one in (*found, *(one.began for one in of.loads))]

    assert ages(moved) == ages(status)
