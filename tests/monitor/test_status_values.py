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
