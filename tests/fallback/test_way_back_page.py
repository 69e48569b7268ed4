"""The page of a way back over real sockets: states, problems, and the commands that help."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg
import pytest
from prometheus_client import CollectorRegistry

from olr_pg.config.address import Address
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback import way_back_page
from olr_pg.fallback.fallback_run import Status, joined
from olr_pg.fallback.oracle_ledger import ROW_EXISTS, ROW_MISSING, LedgerState, Record, TableStop
from olr_pg.fallback.preparation import Slot
from olr_pg.fallback.way_back_page import WayBackCollector, WayBackWatch
from olr_pg.fallback.way_back_status import Watched, WayBackStatus
from olr_pg.monitor.service import ServiceSettings, StatusService
from olr_pg.monitor.status_values import Identity
from olr_pg.observability.periodic import steady_time

MIB: Final = 1 << 20
CONFIG: Final = "/etc/my olr/x.json"
TABLES: Final = ("SHOP.ORDERS", "SHOP.ITEMS", "SHOP.NOTES")
SLOT: Final = Slot(0x2_0000_0010, is_active=True, wal_status="reserved", wal_bytes=16 * MIB)
LEDGER: Final = LedgerState("slot", "1", 1, 0x2_0000_0020, 7, {})
QUIET: Final = Status("olr_pg: way back", SLOT, LEDGER, 4096, [])
STOP: Final = TableStop(0x1_0000_0000, is_stopped=True, reason="OLR-07350: ID 5: too long")


def watched(target: str = "") -> Watched:
    identity = Identity("replica-1", CONFIG, "pg1:5432, database shop", "", "", "db1:1521/shop")
    return Watched(identity, TABLES, 100, target, steady_time())


class Answers:
    """What both sides answer; a test may change it.

    Attributes:
        asked: how often they were asked.
    """

    def __init__(self, found: Status | Exception) -> None:
        self.found = found
        self.asked = 0

    def __call__(self) -> Status:
        self.asked += 1
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def status_of(found: Status | Exception, target: str = "") -> WayBackStatus:
    return WayBackWatch(watched(target), Answers(found)).status()


def stopped(**stops: TableStop) -> Status:
    found = {f"SHOP.{name}": stop for name, stop in stops.items()}
    return QUIET._replace(ledger=LEDGER._replace(stops=found))


def get(service: StatusService, path: str) -> tuple[int, str]:
    place = urlsplit(service.url)
    with closing(http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)) as client:
        client.request("GET", path)
        answer = client.getresponse()
        return answer.status, answer.read().decode()


def test_what_is_served_is_of_the_last_look() -> None:
    answers = Answers(QUIET)
    watch = WayBackWatch(watched(), answers)
    registry = CollectorRegistry()
    registry.register(WayBackCollector(watch.found, 100))
    with StatusService(
        {"": watch.status}, registry, ServiceSettings(address=Address("127.0.0.1", 0))
    ) as service:

        def asked() -> dict[str, Any]:
            code, text = get(service, "/status.json")
            assert code == 200
            record: dict[str, Any] = json.loads(text)
            return record

        record = asked()
        assert record["health"] == "ok"
        assert record["state"]["words"] == "Replicating from PostgreSQL to Oracle"
        assert record["problems"] == []
        back = record["way_back"]
        assert back["slot"]["lsn"] == "2/10"
        assert back["slot"]["wal_bytes"] == 16 * MIB
        assert back["max_wal_bytes"] == 100 * MIB
        assert back["ledger"] == {"lsn": "2/20", "transactions": 7}
        assert back["lag_bytes"] == 4096
        assert [table["name"] for table in record["tables"]] == sorted(TABLES)
        assert get(service, "/healthz")[0] == 200
        code, page = get(service, "/")
        assert (code, 'id="way_back"' in page) == (200, True)
        assert "olr_pg_fallback_up 1.0" in get(service, "/metrics")[1]
        assert answers.asked == 1  # nobody who looks makes work for Oracle

        answers.found = OlrPgError(Code.ORACLE_UNREACHABLE, "nobody answers")
        watch.look()
        record = asked()
        assert (record["health"], record["way_back"], record["tables"]) == ("degraded", None, [])
        assert record["state"]["name"] == "WAITING_FOR_DATABASE"
        assert "nobody answers" in record["problems"][0]
        assert record["commands"] == [[f"olr-pg doctor --config '{CONFIG}'"]]
        assert get(service, "/healthz")[0] == 200  # a restart would not help
        assert "olr_pg_fallback_up 0.0" in get(service, "/metrics")[1]

        answers.found = QUIET._replace(slot=None)
        watch.look()
        code, text = get(service, "/healthz")
        assert (code, json.loads(text)["state"]) == (503, "STOPPED")


def test_each_table_has_its_state_and_its_counts() -> None:
    records = {
        Record("SHOP.ORDERS", "UPDATE", ROW_MISSING, "overwrite"): 2,
        Record("SHOP.ORDERS", "INSERT", ROW_EXISTS, "skip"): 3,
        Record("SHOP.ORDERS", "NOTE", "empty-text", "null"): 40,
        Record("SHOP.ITEMS", "NOTE", "empty-text", "null"): 1,
    }
    found = stopped(ORDERS=STOP, NOTES=STOP._replace(is_stopped=False, reason=None))
    status = status_of(found._replace(records=records))
    told = {
        t.name: (t.state, t.lsn, t.reason, t.conflicts, t.changed_values) for t in status.tables
    }
    assert told == {
        "SHOP.ITEMS": ("replicating", "2/20", None, 0, 1),
        "SHOP.NOTES": ("catching up", "1/0", None, 0, 0),
        "SHOP.ORDERS": ("stopped", "1/0", STOP.reason, 5, 40),
    }


def test_tables_with_the_same_error_are_one_problem_with_its_commands() -> None:
    other = STOP._replace(reason="OLR-07306: the row is missing")
    status = status_of(stopped(ORDERS=STOP, ITEMS=other, NOTES=STOP), target="east")
    assert status.health == "degraded"
    options = f"--config '{CONFIG}' --target east"
    assert dict(zip(status.problems, status.commands, strict=True)) == {
        "Table SHOP.ITEMS has stopped: OLR-07306: the row is missing; correct the cause, then"
        " resume the table. You can also skip the transaction that failed": (
            f"olr-pg fallback resume --table SHOP.ITEMS {options}",
            f"olr-pg fallback skip --table SHOP.ITEMS {options}",
        ),
        "2 tables have stopped: SHOP.NOTES, SHOP.ORDERS. The first error is: OLR-07350: ID 5: too"
        " long; correct the cause, then resume the table. You can also skip the transaction that"
        " failed": (
            f"olr-pg fallback resume --table SHOP.NOTES --table SHOP.ORDERS {options}",
            f"olr-pg fallback skip --table SHOP.NOTES --table SHOP.ORDERS {options}",
        ),
    }


CASES: Final[dict[str, tuple[Status | Exception, str, str]]] = {
    "all is well": (QUIET, "FOLLOWING", ""),
    "nobody reads the slot": (
        QUIET._replace(slot=SLOT._replace(is_active=False)),
        "CONNECTING",
        "",
    ),
    "the slot keeps too much": (
        QUIET._replace(slot=SLOT._replace(wal_bytes=90 * MIB)),
        "FOLLOWING",
        "keeps 90 MiB of PostgreSQL's WAL; `fallback.max-wal-mb` is 100 MiB",
    ),
    "the slot is lost": (
        QUIET._replace(slot=SLOT._replace(wal_status="lost", wal_bytes=None)),
        "STOPPED",
        "is missing in PostgreSQL",
    ),
    "the slot is missing": (QUIET._replace(slot=None), "STOPPED", "is missing in PostgreSQL"),
    "the ledger is missing": (
        QUIET._replace(ledger=None, lag_bytes=None),
        "STOPPED",
        "Oracle does not contain the ledger",
    ),
    "Oracle is away": (
        OlrPgError(Code.ORACLE_UNREACHABLE, "nobody answers"),
        "WAITING_FOR_DATABASE",
        "nobody answers",
    ),
    "PostgreSQL is away": (
        psycopg.OperationalError("it is shut down"),
        "WAITING_FOR_DATABASE",
        "it is shut down",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_state_has_its_words_and_its_problem(name: str) -> None:
    found, state, problem = CASES[name]
    status = status_of(found)
    assert status.state.name == state
    assert status.as_record()["state"]["words"] != state
    assert status.health == ("failed" if state == "STOPPED" else "degraded" if problem else "ok")
    assert len(status.problems) == bool(problem)
    for text, commands in zip(status.problems, status.commands, strict=True):
        assert problem in text
        assert commands
        assert all(one.endswith(f"--config '{CONFIG}'") for one in commands)


def test_a_state_is_as_old_as_its_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(way_back_page, "steady_time", lambda: now[0])
    monkeypatch.setattr(way_back_page, "clock_shift", lambda: 3600.0)
    answers = Answers(QUIET)
    watch = WayBackWatch(watched(), answers)

    def told() -> tuple[str, float, float]:
        status = watch.status()
        return status.state.name, status.state.since, status.at

    assert told() == ("FOLLOWING", 4600.0, 4600.0)
    now[0] = 1010.0
    watch.look()
    assert told() == ("FOLLOWING", 4600.0, 4610.0)
    answers.found = QUIET._replace(slot=None)
    watch.look()
    assert told() == ("STOPPED", 4610.0, 4610.0)


def test_several_containers_are_one_status_with_the_worst_of_each() -> None:
    behind = LEDGER._replace(lsn=5, stops={"PDB2.SHOP.ORDERS": STOP})
    full = SLOT._replace(wal_bytes=90 * MIB, is_active=False)
    one = QUIET._replace(container="PDB1", lag_bytes=10)
    other = QUIET._replace(container="PDB2", slot=full, ledger=behind, lag_bytes=9000)
    found = joined([one, other])
    assert found.slot == full
    assert found.ledger is not None
    assert (found.ledger.lsn, found.ledger.transactions, found.lag_bytes) == (5, 14, 9000)
    record = status_of(found).as_record()
    assert record["way_back"]["containers"]["PDB2"]["slot"]["wal_bytes"] == 90 * MIB
    assert [table["state"] for table in record["tables"] if table["name"][0] == "P"] == ["stopped"]
    page = status_of(found).as_shown("orders")
    assert page["tables"][0]["state"] == "stopped"
    assert page["shown"]["matching"] == len(page["tables"])
    lost = SLOT._replace(wal_status="lost")
    assert status_of(joined([one._replace(slot=lost), other])).state.name == "STOPPED"
    for lacking in (one._replace(slot=None), one._replace(ledger=None)):
        assert status_of(joined([lacking, other])).state.name == "STOPPED"
    assert joined([one]) is one
