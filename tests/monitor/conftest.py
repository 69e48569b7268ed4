"""A status with everything in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from olr_pg.monitor.lag import Lag
from olr_pg.monitor.status_values import (
    Identity,
    LoadStatus,
    PortStatus,
    ProcessStatus,
    Rates,
    SourceStatus,
    StageState,
    Status,
    TableStatus,
    ThreadStatus,
)
from olr_pg.observability.logging_setup import configure_logging

NOW = 1_800_000_000.0


@pytest.fixture
def status() -> Status:
    return Status(
        version="1.2.3",
        at=NOW,
        started_at=NOW - 3600,
        state=StageState("WAITING_FOR_REDO", NOW - 75, "OLR-02010: a log is missing; restore it"),
        source=SourceStatus(
            decoded_scn=2_266_400,
            logs=12,
            redo_bytes=5 << 30,
            transactions=1000,
            rows=54_321,
            rows_filtered=17,
            transactions_filtered=5,
            lob_unavailable=3,
            lob_unclaimed=1,
            threads=(
                ThreadStatus(1, 21, 2_266_500, NOW - 30, 20, 2_266_450),
                ThreadStatus(2, 8, 2_266_400, NOW - 90, 8, 2_266_400),
            ),
            gaps=("OLR-02010: sequence 9 is not among the logs [thread 2]",),
            waiting_transactions=3,
            open_transactions=4,
            oldest_open_xid="3.5.524",
            oldest_open_scn=2_266_100,
            oldest_open_seconds=4000.0,
            spilled_bytes=3 << 20,
        ),
        port=PortStatus(
            "127.0.0.1:9700",
            connections=2,
            client="127.0.0.1:40000",
            refused={"OLR-04033": 7},
            saved_scn=2_266_100,
            taken_scn=2_266_390,
            ready=40,
            transmitted=2,
            queued_bytes=230 << 20,
            bytes_max=256 << 20,
            transactions_max=10_000,
            full=True,
        ),
        process=ProcessStatus(4711, 300 << 20, 28, 19, 512 << 20),
        tables=(
            TableStatus(
                "SHOP.ORDERS",
                2_266_380,
                120,
                900,
                50_000,
                4_000,
                321,
                2,
                None,
                Lag(0.0, 4.0, 2.0, 1.5),
                7.5,
            ),
            TableStatus(
                'SHOP.<b onclick="alert(1)">x',
                2_266_300,
                stopped="OLR-05008: <script>document.title = 'broken'</script>; mend it",
                lag_seconds=3661.0,
                held_scn=2_266_301,
                held_since=NOW - 3661,
                error_id=17,
            ),
        ),
        rates=Rates(3.5 * (1 << 20), 1234.0, 999.0),
        archive_seconds=30.0,
        confirmed_scn=2_266_370,
        problems=("table SHOP.X has stopped: OLR-05008: <i>a value</i> does not fit",),
        commands=(("olr-pg errors show 17 --config /etc/olr-pg/x.json",),),
        identity=Identity(
            "replica-1",
            "/etc/olr-pg/x.json",
            "FREE",
            "SHOPPDB",
            "db1:1521/shop",
            "pg1:5432, database shop",
            "olr_pg",
        ),
        loads=(LoadStatus("SHOP.OLD_ORDERS", 2_266_000, 40, 10, 250_000, 60 << 20, NOW - 30),),
        events=(
            {
                "timestamp": "2026-11-21T20:00:00Z",
                "level": "warning",
                "event": "connection refused",
                "code": "OLR-04033",
            },
            {
                "timestamp": "2026-11-21T20:00:02Z",
                "level": "warning",
                "event": "connection refused",
                "code": "OLR-04033",
            },
            {
                "timestamp": "2026-11-21T20:01:00Z",
                "level": "error",
                "message": "table stopped",
                "table": "SHOP.X",
            },
        ),
    )


@pytest.fixture
def remembered() -> Iterator[None]:
    """Warnings are kept, as they are while an appliance runs."""
    configure_logging(0)
    yield
    structlog.reset_defaults()
