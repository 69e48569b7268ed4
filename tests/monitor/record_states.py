"""Records the statuses of `states/`: `python -m tests.monitor.record_states`.

A simulated Oracle takes orders, an appliance loads and replicates them, and what may go wrong goes
wrong. Names of this machine are replaced by made-up ones. Needs root, for a disk that gets full.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from olr_pg.postgres.embedded import EmbeddedPostgres, start_embedded
from tests.monitor.recorded_states import FOLDER

PATIENCE = 300.0
DISK_SIZE = "96m"
COMMAND = (sys.executable, "-m", "olr_pg")


class Recording:
    """The source, the target and the appliance."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster: EmbeddedPostgres = start_embedded(folder / "postgres")
        self.source = self.simulate()
        self.config = folder / "sim" / "olr-pg.json"
        await_that("the source's configuration", self.config.is_file)
        self.configure()
        self.appliance: subprocess.Popen[bytes] | None = None

    def simulate(self) -> subprocess.Popen[bytes]:
        out = str(self.folder / "sim")
        options = ("--seed", "5", "--workload", "orders", "--prefilled", "--live")
        more = ("--rate", "150KB", "--switch-seconds", "3", "--out", out, "--serve", "0")
        return subprocess.Popen([*COMMAND, "simulate", *options, *more])

    def configure(self) -> None:
        document = json.loads(self.config.read_text("utf-8"))
        document["apply"]["connect-string"] = self.cluster.connect_string
        document["source"]["poll-ms"] = 1500
        self.data = self.config.parent / document["context"]["data"]
        self.data.mkdir()
        small = ("mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs")
        subprocess.run([*small, self.data], check=True)
        document["status"] = {"address": "127.0.0.1:0", "name": "shop-replica"}
        self.config.write_text(json.dumps(document), "utf-8")

    def load(self) -> None:
        """Load the tables, and record a moment of it."""
        command = [*COMMAND, "initial-load", "--config", str(self.config)]
        with subprocess.Popen(command) as loading:
            self.record("loading", lambda r: is_loading(r) and len(r["loads"]) > 1)
            if loading.wait() != 0:
                raise SystemExit("the load has failed")

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        ballast = self.data / "ballast"
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(1 << 16))
        yield
        ballast.unlink()

    def close(self) -> None:
        for process in (self.appliance, self.source):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
        self.cluster.stop()
        subprocess.run(["umount", "--lazy", self.data], check=True)

    def start(self) -> None:
        self.appliance = subprocess.Popen([*COMMAND, "run", "--config", str(self.config)])

    def status(self) -> dict[str, Any]:
        announced = next(self.folder.glob("**/status.json"), None)
        if announced is None:
            return {}
        try:
            url = json.loads(announced.read_text())["url"]
            with urllib.request.urlopen(url + "status.json", timeout=5) as answer:
                record: dict[str, Any] = json.load(answer)
                return record
        except (OSError, ValueError):
            return {}

    def record(self, name: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        found: list[dict[str, Any]] = []

        def is_there() -> bool:
            record = self.status()
            if record and wanted(record):
                found.append(record)
            return bool(found)

        await_that(name, is_there)
        FOLDER.mkdir(exist_ok=True)
        text = self.masked(json.dumps(found[0], indent=1))
        (FOLDER / f"{name}.json").write_text(text + "\n", "utf-8")
        return found[0]

    def masked(self, text: str) -> str:
        identity = json.loads(text)["identity"]
        for found, made_up in (
            (str(self.config), "/etc/olr-pg/olr-pg.json"),
            (str(self.folder), "/srv/olr-pg"),
            (identity["source_place"], "db1.example.com:1521/shop"),
            (identity["target"], "pg1.example.com:5432, database shop"),
            (identity["target"].partition(",")[0], "pg1.example.com:5432"),
        ):
            text = text.replace(found, made_up) if found else text
        return text

    def sql(self, statement: str) -> None:
        with psycopg.connect(self.cluster.connect_string, autocommit=True) as connection:
            connection.execute(statement)

    @contextmanager
    def locked(self, table: str) -> Iterator[None]:
        with psycopg.connect(self.cluster.connect_string) as connection:
            connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            yield

    def run(self, *arguments: str) -> None:
        subprocess.run([*COMMAND, *arguments, "--config", str(self.config)], check=False)

    def take_log_away(self) -> tuple[Path, Path]:
        before = self.logs()
        await_that("a new log", lambda: bool(self.logs() - before))
        log = min(self.logs() - before)
        away = self.folder / log.name
        log.rename(away)
        return log, away

    def logs(self) -> set[Path]:
        logs = self.folder / "sim" / "logs"
        return {one for one in logs.iterdir() if one.is_file() and not one.name.startswith(".")}


def await_that(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} does not come")
        time.sleep(0.02)


def state(name: str) -> Callable[[dict[str, Any]], bool]:
    return lambda record: record["state"]["name"] == name


def is_loading(record: dict[str, Any]) -> bool:
    return record["state"]["name"] == "LOADING" and any(one["rows"] for one in record["loads"])


def lasts(name: str) -> Callable[[dict[str, Any]], bool]:
    """In that state for a while."""
    return lambda r: state(name)(r) and r["at"] - r["state"]["since"] > 15


def caught_up(record: dict[str, Any]) -> bool:
    rates, name = record["rates"], record["state"]["name"]
    return bool(name == "CAUGHT_UP" and rates["applied_changes"] > 0)


def record_all(one: Recording) -> None:
    one.load()
    one.start()
    one.record("starting", state("STARTING"))
    one.record(
        "catching-up",
        lambda r: r["state"]["name"] == "DECODING" and r["rates"]["decoded_rows"] > 0,
    )
    one.record("caught-up", caught_up)
    one.sql("ALTER TABLE shop.order_lines ADD CONSTRAINT none CHECK (false) NOT VALID")
    one.record(
        "table-stopped",
        lambda r: any(t["error_id"] and (t["lag_seconds"] or 0) > 5 for t in r["tables"]),
    )
    one.sql("ALTER TABLE shop.order_lines DROP CONSTRAINT none")
    one.run("errors", "retry")
    await_that("the table goes on", lambda: caught_up(one.status()))
    log, away = one.take_log_away()
    one.record(
        "behind-a-gap",
        lambda r: (
            state("WAITING_FOR_REDO")(r) and max(t["lag_seconds"] or 0 for t in r["tables"]) > 20
        ),
    )
    away.rename(log)
    await_that("it goes on", lambda: caught_up(one.status()))
    one.cluster.stop()
    one.record("waiting-for-target", lasts("WAITING_FOR_TARGET"))
    one.cluster = start_embedded(one.folder / "postgres")
    await_that("it goes on", lambda: caught_up(one.status()))
    with one.full_disk():
        one.record("waiting-for-disk", lasts("WAITING_FOR_DISK"))
    await_that("it goes on", lambda: caught_up(one.status()))
    one.run("tables", "pause", "--all")
    one.record("paused", lasts("PAUSED"))
    one.run("tables", "resume", "--all")
    await_that("it goes on", lambda: caught_up(one.status()))
    with one.locked("shop.orders"):
        await_that("changes wait", lambda: any(t["waiting"] for t in one.status()["tables"]))
        os.kill(one.source.pid, signal.SIGKILL)
        one.record("source-down", state("WAITING_FOR_SOURCE"))
        assert one.appliance is not None
        one.appliance.terminate()
        one.record("stopping", state("STOPPING"))
    one.appliance.wait()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="olr-pg-states-") as folder:
        one = Recording(Path(folder))
        try:
            record_all(one)
        finally:
            one.close()


if __name__ == "__main__":
    main()
