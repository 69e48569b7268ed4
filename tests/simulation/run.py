"""One seed: its source, its rounds of faults, and a last clean run; the laws checked all along."""

from __future__ import annotations

import base64
import json
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.appliance.appliance import run_appliance
from olr_pg.capture.logs import discover_logs
from olr_pg.config.reading import load_config
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import OlrPgError
from olr_pg.schema.followed_steps import step_sql
from olr_pg.simulator.simulation import simulate
from olr_pg.wire.frames import ByteOrder
from tests.rendering.element_lines import value_renderer
from tests.simulation.arrival import Arrival, SourceLog
from tests.simulation.entry import PORT, VIOLATIONS, prepared
from tests.simulation.laws import (
    LawBrokenError,
    check_checkpoint,
    check_stream,
    check_target,
    is_durable,
    lagging,
    not_stopped,
    read_ledger,
)
from tests.simulation.online_arrival import FOLDER as ONLINE
from tests.simulation.online_arrival import OnlineArrival
from tests.simulation.parts import Parts
from tests.simulation.plan import draw_plan
from tests.simulation.proxy import LOOPBACK, Proxy
from tests.simulation.schema_diff import schema_differences
from tests.simulation.stranger import confirmed_by_foreign
from tests.simulation.truth import Truth

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from olr_pg.config.model import Config
    from olr_pg.simulator.simulated_files import Summary
    from tests.simulation.laws import Applied, Judge
    from tests.simulation.plan import Plan, Round

STOPPED: Final = 5010
"""A table has stopped."""

STUCK_SECONDS: Final = 90.0
SPARK_STUCK_SECONDS: Final = 480.0
"""Spark's workers compile kernels for themselves where they are the first to need them."""
LOOK_SECONDS: Final = 0.01
HOLD_SECONDS: Final = 0.06
"""In which a reader looks at online logs, and nobody can tell that it has."""
SILENT_SECONDS: Final = 3.0

KEY: Final = base64.b64encode(bytes(range(32))).decode()
"""Of appliances that encrypt their files with rows."""

"""After which the server ends a client that hangs."""


@dataclass(frozen=True)
class Bench:
    """Where seeds run.

    Attributes:
        folder: of its own for each seed, and empty.
        postgres: connection string of a database for the targets; the role is a superuser.
        spark: the session to decode in; None decodes in this process.
    """

    folder: Path
    postgres: str
    spark: SparkSession | None


@dataclass
class Outcome:
    """What a seed came to.

    Attributes:
        lives: how many times a part was started.
        tripped: how many faults happened.
        streamed: transactions that were seen on the port.
    """

    seed: int
    transactions: int = 0
    lives: int = 0
    tripped: int = 0
    streamed: int = 0


def run_seed(
    seed: int,
    bench: Bench,
    draw: Callable[[int], Plan] = draw_plan,
    kind: type[Simulation] | None = None,
) -> Outcome:
    """Run a seed.

    Args:
        draw: draws the plan of a seed.
        kind: the class that runs it; None for `Simulation`.

    Raises:
        LawBrokenError: a law was broken, or nothing went on.
    """
    load_kernels()
    with ExitStack() as stack:
        return (kind or Simulation)(draw(seed), bench, stack).run()


@cache
def load_kernels() -> None:
    """Compile what is not compiled, so that no seed's clock runs meanwhile."""
    from tests.simulation import warm as warm


class Simulation:
    """One seed at work.

    Attributes:
        judge: says which tables may stop; None if the truth knows it.
    """

    judge: Judge | None = None

    def __init__(self, plan: Plan, bench: Bench, stack: ExitStack) -> None:
        self.plan = plan
        self.folder = bench.folder
        self.spark = bench.spark
        self.subscription = f"seed-{plan.seed}"
        self.schema = f"seed_{plan.seed}"
        self.outcome = Outcome(plan.seed)
        self._confirmed = set[int]()
        source = self.folder / "source"
        summary = self.write_source(source)
        names = [table.full_name for table in summary.tables]
        self.truth = Truth(source, names, summary.parallel)
        self.outcome.transactions = len(self.truth.transactions)
        logs = [
            SourceLog(Path(log.path), log.header.thread, log.header.sequence, log.next_scn)
            for log in discover_logs([str(source / "logs")])
        ]
        logs.sort(key=lambda log: [str(path) for path in summary.logs].index(str(log.path)))
        self.arrival: Arrival | OnlineArrival
        if plan.online:
            self.arrival = online = OnlineArrival(self.folder, logs, plan.seed)
            stack.callback(online.close)
        else:
            steps = plan.arrivals([log.thread for log in logs])
            self.arrival = Arrival(self.folder / "logs", logs, steps)
        self.rounds = plan.rounds(self.arrival.left)
        self.order = ByteOrder(plan.settings.byte_order)
        self.snapshot = load_snapshot(str(source / "dictionary.json"))
        self.database = self.snapshot.database
        self._tables = summary.tables
        self.protocol = stack.enter_context(
            Proxy(self.order.value, self.server_address, records=True)
        )
        self.connection = psycopg.connect(bench.postgres, autocommit=True)
        stack.callback(self.connection.close)
        stack.callback(self._clean)
        self.postgres = stack.enter_context(self._postgres_proxy(bench.postgres))
        self.postgres_string = bench.postgres
        self._configure(bench, summary.tables[0].owner)

    def write_source(self, folder: Path) -> Summary:
        """Write the source's logs, dictionary and truth."""
        plan = self.plan
        return simulate(plan.seed, folder, workload=plan.workload, size=plan.size, shape=plan.shape)

    def _postgres_proxy(self, postgres: str) -> Proxy:
        parts = conninfo_to_dict(postgres)
        address = str(parts["host"]), int(str(parts["port"]))
        return Proxy("postgres", lambda: address)

    def server_address(self) -> tuple[str, int]:
        """Where the server listens; FileNotFoundError while there is none."""
        return LOOPBACK, int(str((self.folder / PORT).readlink()))

    def _configure(self, bench: Bench, owner: str) -> None:
        settings = self.plan.settings
        document = {
            "context": {
                "data": str(self.folder / "data"),
                "memory": {"max-tx-msgs": settings.transactions_max},
                **({"encryption-key": KEY} if self.plan.encrypted else {}),
            },
            "source": {
                "kind": "offline",
                "poll-ms": 20,
                "dictionary": str(self.folder / "source" / "dictionary.json"),
                "logs": str(self.folder / "logs"),
                **self._online_logs(),
            },
            "target": {
                "address": f"{LOOPBACK}:0",
                "byte-order": settings.byte_order,
                "chunk-size": settings.chunk_size,
                "limits": {"silent-seconds": SILENT_SECONDS},
            },
            "apply": {
                "connect-string": make_conninfo(
                    bench.postgres,
                    port=self.postgres.port,
                    sslmode="disable",
                    gssencmode="disable",
                ),
                "tables": [f"{owner}.*"] if self.plan.grows else self.truth.tables,
                "subscription": self.subscription,
                "create-tables": True,
                "ddl": self.ddl_policies(),
                "schema-mapping": {owner: self.schema},
                "workers": settings.workers,
                "batch-changes": settings.batch_changes,
                "batch-ms": settings.batch_ms,
            },
            "spark": {"master": "local[2,2]"},
            "status": {"enabled": False},
        }
        (self.folder / "config.json").write_text(json.dumps(document, indent=2), "utf-8")
        (self.folder / "logs").mkdir(exist_ok=True)
        (self.folder / "data").mkdir()
        apply = load_config(self.folder / "config.json").apply
        assert apply is not None
        self.query = apply.table_query
        self.foreign = confirmed_by_foreign(self.query)
        known = {
            "tables": self.truth.tables,
            "postgres": bench.postgres,
            "foreign": self.foreign,
        }
        (self.folder / "source.json").write_text(json.dumps(known), "utf-8")

    def ddl_policies(self) -> dict[str, str]:
        """The section ``apply.ddl``."""
        return {"drop-table": "follow", "index": "follow", "constraint": "follow"}

    def _online_logs(self) -> dict[str, str]:
        if not self.plan.online:
            return {}
        return {"redo": "online", "online-logs": str(self.folder / ONLINE)}

    def _clean(self) -> None:
        self.connection.execute(
            sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(self.schema))
        )
        if read_ledger(self.connection, self.subscription):
            self.connection.execute(
                "DELETE FROM olr_pg.ledger WHERE subscription = %s", (self.subscription,)
            )

    # --- the course of it ---

    def run(self) -> Outcome:
        early = self.arrival.place_every_thread()
        for round_ in self.rounds:
            arrived = min(early, round_.arrivals)
            early -= arrived
            self._run_round(round_, round_.arrivals - arrived)
            self.after_round()
        while self.arrival.left:
            self.arrival.step()
        self._run_last()
        return self.outcome

    def after_round(self) -> None:
        """Do what an operator does while no part runs; here nothing."""

    def stopped_anew(self, ledger: dict[str, Applied]) -> bool:
        """Whether a table has stopped of which that is not known."""
        return any(one.stopped for name, one in ledger.items() if name not in self.truth.stops)

    @property
    def readable_scn(self) -> int:
        """Transactions that commit below this SCN can be applied by now."""
        return self.truth.known_below(self.arrival.readable_scn)

    def _run_round(self, round_: Round, arrivals: int) -> None:
        with Parts(self, round_) as parts:
            self._follow(arrivals, parts)
            parts.end()
        self.check()

    def _follow(self, arrivals: int, parts: Parts) -> None:
        """Let logs arrive and parts die and live again, until all that can be is applied."""
        waits = holds = False
        since = time.monotonic()
        ledger_then: dict[str, Applied] = {}
        patience = STUCK_SECONDS if self.spark is None else SPARK_STUCK_SECONDS
        while True:
            if parts.look_after():
                since = time.monotonic()
                self.check()
            self._check_violations()
            ledger = read_ledger(self.connection, self.subscription)
            behind = lagging(ledger, self.truth, self.readable_scn)
            if self.stopped_anew(ledger):
                self.check()
            if arrivals and not (waits and behind):
                if holds:
                    time.sleep(HOLD_SECONDS)
                step = self.arrival.step()
                waits, holds = step.waits, step.holds
                arrivals -= 1
                since = time.monotonic()
                continue
            if not arrivals and behind is None:
                return
            if ledger != ledger_then:
                since, ledger_then = time.monotonic(), ledger
            if time.monotonic() - since > patience:
                raise LawBrokenError(
                    f"nothing goes on: transaction {behind and behind.identity} is readable,"
                    f" the ledger says {ledger}\n{parts.last_words()}"
                )
            time.sleep(LOOK_SECONDS)

    def _run_last(self) -> None:
        """A run without faults over everything; again, it changes nothing."""
        config = load_config(self.folder / "config.json")
        ledger = read_ledger(self.connection, self.subscription)
        was_complete = lagging(ledger, self.truth, self.readable_scn) is None
        before = self._versions() if was_complete else None
        self.replicate(config)
        ledger = self.check()
        unseen = not_stopped(ledger, self.truth, 1 << 63)
        if unseen:
            raise LawBrokenError(f"{', '.join(unseen)} must stop, but did not")
        behind = lagging(ledger, self.truth, 1 << 63)
        if behind is not None:
            raise LawBrokenError(f"transaction {behind.identity} is missing at the end")
        if before is not None and before != self._versions():
            raise LawBrokenError("a run with nothing to apply changed rows")
        self._check_schema(config, {name for name, one in ledger.items() if one.stopped})

    def _check_schema(self, config: Config, stopped: set[str]) -> None:
        """Law 5: the target is defined as the source, by ``schema diff``."""
        found = schema_differences(self.connection, config, self.snapshot, self._tables, stopped)
        if found:
            raise LawBrokenError("`schema diff` is not empty:\n" + "\n".join(found[:10]))

    def replicate(self, config: Config) -> None:
        """``olr-pg run --once``, which ends with an error where a table must have stopped."""
        self.outcome.lives += 1
        with prepared(self.folder, self.plan.settings, self.subscription, self.spark):
            try:
                assert run_appliance(config, once=True, apply=True, translate=step_sql) == 0
            except OlrPgError as error:
                if error.code != STOPPED:
                    raise
                if not self.may_stop:
                    raise LawBrokenError(f"a table stops without a reason: {error}") from error

    @property
    def may_stop(self) -> bool:
        """Whether a table may have stopped."""
        return bool(self.truth.stops)

    def _versions(self) -> list[Any]:
        """Place and writing transaction of every row."""
        tables = self.connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s ORDER BY 1",
            (self.schema,),
        ).fetchall()
        found = list[Any]()
        for (table,) in tables:
            query = sql.SQL("SELECT ctid::text, xmin::text FROM {} ORDER BY 1, 2")
            rows = self.connection.execute(query.format(sql.Identifier(self.schema, table)))
            found += [(table, *row) for row in rows.fetchall()]
        return found

    # --- the laws ---

    def check(self) -> dict[str, Applied]:
        """All laws now; the ledger.

        Raises:
            LawBrokenError: one does not hold.
        """
        self._check_violations()
        check_checkpoint(
            self.connection, self.truth, self.subscription, self.folder / "data", self.foreign
        )
        # A connection keeps files open, and a full disk is made of other ones.
        with psycopg.connect(self.postgres_string, autocommit=True) as connection:
            ledger = check_target(
                connection, self.truth, self.subscription, self.schema, self.judge
            )
        self._confirmed.update(
            id(one) for one in self.truth.transactions if is_durable(one, ledger)
        )
        return ledger

    def _check_violations(self) -> None:
        violations = self.folder / VIOLATIONS
        found = violations.read_text("utf-8") if violations.exists() else ""
        if found:  # else its writer has only just opened it
            raise LawBrokenError(found)

    def check_streams(self) -> None:
        """Law 3 for the connections that have ended.

        Raises:
            LawBrokenError: it does not hold.
        """
        render = value_renderer(self.database)
        while self.protocol.recordings:
            recording = self.protocol.recordings.pop(0)
            self.outcome.streamed += check_stream(
                recording, self.truth, self.order, render, self._confirmed
            )
