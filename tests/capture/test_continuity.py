from __future__ import annotations

from dataclasses import replace

import pytest

from olr_pg.capture.archived_log import ArchivedLog
from olr_pg.capture.continuity import (
    Gap,
    LogStream,
    check_chain,
    check_origin,
    find_gaps,
    join_logs,
)
from olr_pg.capture.logs import discover_logs, open_log
from olr_pg.dictionary.model import Database
from olr_pg.errors import OlrPgError

from .conftest import RealLogs


@pytest.fixture
def pair(logs: RealLogs) -> list[ArchivedLog]:
    return discover_logs([logs.put("15", logs.first), logs.put("16", logs.second)])


def log_at(
    log: ArchivedLog, sequence: int, *, thread: int = 1, resetlogs_id: int = 1224959854
) -> ArchivedLog:
    header = replace(log.header, sequence=sequence, thread=thread, resetlogs_id=resetlogs_id)
    return replace(log, header=header)


# --- gaps ---


def test_the_real_logs_have_no_gap_and_join(pair: list[ArchivedLog]) -> None:
    assert find_gaps(pair) == []
    check_chain(pair)


def test_a_gap_is_what_is_missing_and_from_which_scn(logs: RealLogs) -> None:
    logs.put("15", logs.first)
    logs.put("19", logs.changed(logs.second, sequence=19))
    found = discover_logs([str(logs.folder)])

    assert find_gaps(found) == [Gap(1224959854, 1, 16, 18, 2267717)]
    check_chain(found)


def test_every_thread_has_its_own_sequences(pair: list[ArchivedLog]) -> None:
    log = pair[0]
    found = [log_at(log, 7), log_at(log, 9), log_at(log, 3, thread=2), log_at(log, 4, thread=2)]

    assert find_gaps(found) == [Gap(1224959854, 1, 8, 8, 2267717)]


def test_a_later_incarnation_begins_with_sequence_one(pair: list[ArchivedLog]) -> None:
    log, later = pair[0], 1224959855

    assert find_gaps([log, log_at(log, 1, resetlogs_id=later)]) == []
    assert find_gaps([log, log_at(log, 3, resetlogs_id=later)]) == [Gap(later, 1, 1, 2, None)]
    assert find_gaps([log_at(log, 3, resetlogs_id=later)]) == []


@pytest.mark.parametrize(
    ("last", "detail"),
    [
        (16, "sequence 16 is not among the logs"),
        (18, "sequence 16 to 18 are not among the logs"),
    ],
)
def test_a_gap_as_an_error(last: int, detail: str) -> None:
    error = Gap(1224959854, 2, 16, last, 5).as_error()

    assert (error.code, error.detail) == (2010, detail)
    assert error.where == {"thread": 2, "sequence": 16, "resetlogs": 1224959854, "scn": 5}


def test_no_logs_have_no_gaps() -> None:
    assert find_gaps([]) == []
    check_chain([])


# --- the stream ---


def test_the_real_logs_are_one_stream(pair: list[ArchivedLog], database: Database) -> None:
    stream = join_logs(pair, database)

    assert stream == LogStream(tuple(pair), ())
    assert stream.readable == tuple(pair)


def test_behind_a_gap_only_its_own_thread_waits(pair: list[ArchivedLog]) -> None:
    log = pair[0]
    first, third = log_at(log, 1), log_at(log, 3)
    later = log_at(log, 1, resetlogs_id=1224959855)
    others = [log_at(log, sequence, thread=2) for sequence in (5, 6)]
    found = (first, third, *others, later)

    assert LogStream(found, tuple(find_gaps(found))).readable == (first, *others)


def test_a_foreign_log_is_never_part_of_a_stream(
    pair: list[ArchivedLog], database: Database
) -> None:
    foreign = log_at(pair[1], 17, resetlogs_id=1111)
    with pytest.raises(OlrPgError) as caught:
        join_logs([*pair, foreign], database)

    assert caught.value.code == 2009


# --- the chain ---


def test_a_log_that_begins_before_the_end_of_the_previous_one(logs: RealLogs) -> None:
    first = logs.put("15", logs.first)
    second = logs.put("16", logs.changed(logs.second, (logs.FIRST_SCN, 2267716)))
    with pytest.raises(OlrPgError) as caught:
        check_chain(discover_logs([first, second]))

    assert (caught.value.code, caught.value.where["sequence"]) == (2020, 16)
    assert caught.value.detail == f"{first} ends at SCN 2267717, {second} begins at SCN 2267716"


@pytest.mark.parametrize("activation", [1496992686, 5])
def test_a_restarted_instance_goes_on_at_a_later_scn(
    logs: RealLogs, database: Database, activation: int
) -> None:
    """Also after a switchover, which gives the logs another activation id."""
    first = logs.put("15", logs.first)
    later = logs.changed(
        logs.second, (logs.FIRST_SCN, 2267720), (logs.NEXT_SCN, 2267730),
        (logs.ACTIVATION, activation),
    )  # fmt: skip
    found = discover_logs([first, logs.put("16", later)])
    stream = join_logs(found, database)
    assert (stream.readable, stream.gaps) == (tuple(found), ())


def test_logs_of_two_databases(logs: RealLogs) -> None:
    first = logs.put("15", logs.first)
    second = logs.put("16", logs.changed(logs.second, (logs.DBID, 42)))
    with pytest.raises(OlrPgError) as caught:
        check_chain(discover_logs([first, second]))

    assert (caught.value.code, caught.value.where["file"]) == (2009, second)
    assert "DBID 42" in caught.value.detail


# --- the origin ---


def test_the_real_logs_are_of_the_real_database(
    pair: list[ArchivedLog], database: Database
) -> None:
    for log in pair:
        # The header has the CDB's DBID, the dictionary the PDB's: they differ, rightly.
        assert log.header.dbid == 1497016494
        assert database.dbid == 1385559638
        check_origin(log, database)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("RESETLOGS", 1111, "resetlogs id 1111 is not among 1224959854, 1222743579"),
        ("DB_NAME", b"OTHER\0\0\0", "database name is OTHER, but the dictionary's is FREE"),
    ],
)
def test_a_log_of_another_database(
    logs: RealLogs, database: Database, field: str, value: object, words: str
) -> None:
    offset_and_form: tuple[int, str] = getattr(logs, field)
    path = logs.put("x", logs.changed(logs.first, (offset_and_form, value)))
    with pytest.raises(OlrPgError) as caught:
        check_origin(open_log(path), database)

    assert (caught.value.code, caught.value.where["file"]) == (2009, path)
    assert words in caught.value.detail


def test_the_byte_order_tells_platforms_apart(pair: list[ArchivedLog], database: Database) -> None:
    with pytest.raises(OlrPgError) as caught:
        check_origin(pair[0], replace(database, big_endian=True))

    assert caught.value.code == 2009


def test_outside_of_a_cdb_the_dbid_counts(pair: list[ArchivedLog], database: Database) -> None:
    check_origin(pair[0], replace(database, con_id=0, dbid=1497016494))
    with pytest.raises(OlrPgError) as caught:
        check_origin(pair[0], replace(database, con_id=0))

    assert caught.value.code == 2009


@pytest.mark.parametrize("resetlogs", [1224959854, 1222743579])
def test_an_incarnation_may_have_several_activations(
    logs: RealLogs, database: Database, resetlogs: int
) -> None:
    """Each switchover assigns a new one, without a RESETLOGS."""
    data = logs.changed(logs.first, (logs.RESETLOGS, resetlogs), (logs.ACTIVATION, 5))

    check_origin(open_log(logs.put("x", data)), database)


def test_what_the_dictionary_does_not_know_is_not_checked(pair: list[ArchivedLog]) -> None:
    check_origin(pair[0], Database("free"))
