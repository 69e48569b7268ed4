"""The latest warnings and errors."""

from __future__ import annotations

from olr_pg.observability.recent import EVENTS_MAX, recent_events, remember


def test_only_what_is_grave_is_kept_and_only_the_latest() -> None:
    for number in range(EVENTS_MAX + 5):
        remember(None, "", {"event": "e", "level": "warning", "number": number})
        remember(None, "", {"event": "e", "level": "info", "number": -1})
    numbers = [event["number"] for event in recent_events()]
    assert numbers == list(range(5, EVENTS_MAX + 5))


def test_the_event_goes_on_as_it_is_and_the_copy_is_short() -> None:
    event = {"event": "x" * 5_000, "level": "error", "_record": object(), "where": {"a": 1}}
    assert remember(None, "", event) is event
    kept = recent_events()[-1]
    assert kept["event"] == "x" * 2_000
    assert kept["where"] == "a 1"
    assert "_record" not in kept
