"""Logging: levels, both forms, errors of the catalogue, redaction, foreign records.

The latest warnings and errors.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.logging_setup import (
    EVENTS_MAX,
    INFORMATION,
    LogFormat,
    configure_logging,
    get_logger,
    recent_events,
    remember,
)
from tests.hostile import TEXTS


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers, root.level = handlers, level


def logged(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (0, []),
        (1, ["error", "critical"]),
        (2, ["warning", "error", "critical"]),
        (3, ["info", "warning", "error", "critical"]),
        (4, ["debug", "info", "warning", "error", "critical"]),
    ],
)
def test_a_level_lets_through_itself_and_what_is_graver(level: int, expected: list[str]) -> None:
    stream = io.StringIO()
    configure_logging(level, "json", stream=stream)
    log = get_logger("part")
    for name in ("debug", "info", "warning", "error", "critical"):
        getattr(log, name)("event")
    assert expected == [entry["level"] for entry in logged(stream)]


@pytest.mark.parametrize("level", [-1, 5])
def test_other_levels_are_refused(level: int) -> None:
    with pytest.raises(ValueError, match=r"not in 0\.\.4"):
        configure_logging(level)


def test_json_lines_carry_time_component_and_values() -> None:
    stream = io.StringIO()
    configure_logging(3, "json", stream=stream)
    get_logger("capture").info("log read", sequence=7, table="SHOP.ÄÖ")
    (entry,) = logged(stream)
    assert entry.pop("timestamp").endswith("Z")
    assert entry == {
        "message": "log read",
        "component": "capture",
        "level": "info",
        "sequence": 7,
        "table": "SHOP.ÄÖ",
    }


def test_lines_for_people_are_plain_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    configure_logging(3, "human", stream=stream)
    get_logger("capture").info("log read", sequence=7)
    assert "log read" in stream.getvalue()
    assert "sequence=7" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_names_in_lines_for_people_change_no_terminal() -> None:
    stream = io.StringIO()
    configure_logging(3, "human", stream=stream)
    get_logger("capture").info("table", table="S.A\x1b[2J\x9b", error="two\nlines\x1b]0;x\x07")
    (line,) = stream.getvalue().splitlines()
    assert "S.A\\x1b[2J\\x9b" in line
    assert not {"\x1b", "\x9b", "\x07"} & set(line)


def test_an_error_is_spread_into_its_parts() -> None:
    stream = io.StringIO()
    configure_logging(1, "json", stream=stream)
    get_logger("capture").error("failed", error=OlrPgError(2005, "wrong", block=12), attempt=2)
    (entry,) = logged(stream)
    assert entry["code"] == "OLR-02005"
    assert entry["what"] == "a block of the log is corrupt: wrong"
    assert entry["where"] == {"block": 12}
    assert entry["action"].startswith("copy the archived log again")
    assert entry["attempt"] == 2


def test_an_error_for_people_is_one_line() -> None:
    stream = io.StringIO()
    configure_logging(1, "human", stream=stream)
    get_logger("capture").error("failed", error=OlrPgError(2005, "wrong", sequence=7, block=12))
    (line,) = stream.getvalue().splitlines()
    for part in ("OLR-02005", "a block of the log is corrupt: wrong", "sequence 7, block 12"):
        assert part in line


@pytest.mark.parametrize("log_format", ["human", "json"])
def test_an_error_that_is_nowhere_has_no_empty_place(log_format: LogFormat) -> None:
    stream = io.StringIO()
    configure_logging(1, log_format, stream=stream)
    get_logger("capture").error("failed", error=OlrPgError(1150, "SHOP.ORDERS"))
    assert "OLR-01150" in stream.getvalue()
    assert "where" not in stream.getvalue().replace("rows are", "")
    assert "where" not in recent_events()[-1]


@pytest.mark.parametrize("log_format", ["human", "json"])
def test_secrets_are_not_logged(log_format: LogFormat) -> None:
    stream = io.StringIO()
    configure_logging(4, log_format, secrets=["hunter2"], stream=stream)
    log = get_logger("part")
    log.info("connecting with hunter2", url="postgresql://u:other@h", password="third")
    log.error("failed", error=OlrPgError(1001, "hunter2", file="hunter2"))
    log.warning("odd", error=ValueError("password=fourth"))
    try:
        raise ValueError("hunter2")
    except ValueError:
        log.exception("it broke")
    logging.getLogger("driver").warning("using %s", "hunter2")
    for secret in ("hunter2", "other", "third", "fourth"):
        assert secret not in stream.getvalue()
    assert "ValueError" in stream.getvalue()


def test_records_of_other_libraries_take_the_same_way() -> None:
    stream = io.StringIO()
    configure_logging(3, "json", stream=stream)
    logging.getLogger("driver").info("not at level 3")
    logging.getLogger("driver").warning("using %s", "x")
    (entry,) = logged(stream)
    assert (entry["message"], entry["level"], entry["logger"]) == ("using x", "warning", "driver")


def test_a_later_configuration_holds_for_loggers_made_before() -> None:
    log = get_logger("part")
    first, second = io.StringIO(), io.StringIO()
    configure_logging(3, "json", stream=first)
    log.info("one")
    configure_logging(1, "json", stream=second)
    log.info("two")
    log.error("three")
    assert [entry["message"] for entry in logged(first)] == ["one"]
    assert [entry["message"] for entry in logged(second)] == ["three"]


@pytest.mark.parametrize("level", range(5))
def test_the_status_page_has_warnings_and_errors_at_every_level(level: int) -> None:
    configure_logging(level, "json", stream=io.StringIO())
    log = get_logger("part")
    marks = [f"{name} of level {level}" for name in ("info", "warning", "error")]
    log.info(marks[0])
    log.warning(marks[1])
    log.error(marks[2])
    kept = [event["event"] for event in recent_events()]
    assert [mark for mark in marks if mark in kept] == marks[1:]


def test_at_level_0_other_libraries_are_silent_too() -> None:
    stream = io.StringIO()
    configure_logging(0, "human", stream=stream)
    logging.getLogger("driver").critical("the worst")
    get_logger("part").critical("the worst")
    assert stream.getvalue() == ""


def test_the_status_page_has_nothing_of_other_libraries() -> None:
    stream = io.StringIO()
    configure_logging(3, "json", stream=stream)
    before = recent_events()
    logging.getLogger("py4j").warning("its own trouble")
    logging.getLogger("psycopg").warning("error ignored in rollback")
    assert recent_events() == before
    assert [entry["message"] for entry in logged(stream)] == ["its own trouble"]


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


@pytest.mark.parametrize("hostile", TEXTS.values(), ids=list(TEXTS))
@pytest.mark.parametrize("form", ["human", "json"])
def test_a_name_forges_no_line(hostile: str, form: LogFormat) -> None:
    stream = io.StringIO()
    configure_logging(INFORMATION, form, stream=stream)
    log = get_logger("applier")
    log.warning(
        f"the table {hostile} has stopped", table=hostile, tables=[hostile], n={"a": hostile}
    )
    error = OlrPgError(Code.TABLE_UNKNOWN, f"no {hostile}", table=hostile)
    log.error(str(error), error=error)
    logging.getLogger("library").warning("of a library: %s", hostile)
    lines = stream.getvalue().split("\n")
    assert len(lines) == 4
    assert lines.pop() == ""
    if form == "human":
        assert not {"\x1b", "\x9b", "\r", "\u202e", "\u2028"} & set("".join(lines))
    else:
        assert json.loads(lines[0])["table"] == hostile
