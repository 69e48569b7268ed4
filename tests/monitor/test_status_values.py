"""The status as a value."""

from __future__ import annotations

from dataclasses import replace

from olr_pg.monitor.status_values import StageState, Status, overall_health


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


def test_positions_that_nobody_knows_are_null_and_counts_stay(status: Status) -> None:
    thread = replace(status.source.threads[0], decoded_sequence=0, decoded_scn=0)
    unknown = replace(
        status,
        confirmed_scn=0,
        source=replace(status.source, decoded_scn=0, oldest_open_scn=0, logs=0, threads=(thread,)),
        port=replace(status.port, saved_scn=0, taken_scn=0),
        tables=(replace(status.tables[0], applied_scn=0, held_scn=0, waiting=0),),
    )
    record = unknown.as_record()
    (table,), (line,) = record["tables"], record["source"]["threads"]
    positions = [
        *(record["confirmed_scn"], record["port"]["saved_scn"], record["port"]["taken_scn"]),
        *(record["source"]["decoded_scn"], record["source"]["oldest_open_scn"]),
        *(table["applied_scn"], table["held_scn"], line["decoded_scn"], line["decoded_sequence"]),
    ]
    assert positions == [None] * len(positions)
    assert (record["source"]["logs"], table["waiting"]) == (0, 0)
    assert line["archived_scn"] == thread.archived_scn
