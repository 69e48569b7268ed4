"""Outages of ten minutes, as an operator meets them: what the appliance says, and what is left.

    uv run python -m tests.outages --minutes 10
    uv run python -m tests.outages --only quiet --minutes 60

Each course has a simulated source that takes orders, a PostgreSQL and an appliance of its own; all
are run at the same time. One thing goes wrong for so many minutes while the load goes on, and is
mended: PostgreSQL is down, an archived log is missing, the disk of `context.data` is full (a small
tmpfs: needs root), a table refuses a row, somebody locks a table, the source is down, the network
to PostgreSQL or to the source accepts everything and passes nothing on. In the course `network`
both networks delay by two seconds, are cut, reset, or go silent in one or both directions for up to
two minutes, at random (`--seed`); the state is not judged then. In the course `clock` somebody sets
the appliance's clock an hour ahead and an hour back (needs libfaketime), in the course `quiet`
nothing goes wrong. `/metrics` is scraped every 15 seconds, and the alert rules are evaluated on
what was scraped.

What must hold: the state says what is the matter within five seconds (a silent network 30, a lock
20), and nothing else until it is mended; fewer than ten lines in the log; the appliance does not
end; it catches up; at the end all tables are identical; the alerts for it fire, and no others;
where nothing is wrong, the lag stays little; it is never shorter than a silent network to
PostgreSQL, or a lock, has lasted. Figures are printed as JSON. Exit code 0 when all held.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
from prometheus_client.parser import text_string_to_metric_families
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.appliance.demo_run import compare_tables
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.postgres.embedded import EmbeddedPostgres, start_embedded
from tests.configs.promql_subset import Recording, firing
from tests.configs.test_alert_rules import alerts
from tests.simulation.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable

RATE: Final = "8KB"
SWITCH_SECONDS: Final = 3
POLL_MS: Final = 1000
SCRAPE_SECONDS: Final = 15
LOOK_SECONDS: Final = 0.2
PATIENCE: Final = 900.0
STATE_SECONDS_MAX: Final = 5.0
LINES_MAX: Final = 9
SETTLED_SECONDS: Final = 60.0
DISK_SIZE: Final = "96m"
LAG_SECONDS_MAX: Final = 60.0
LAG_OFF_SECONDS: Final = 5.0
"""By so much a lag may be shorter than an outage: the source makes a change now and then."""

SILENT_SECONDS_MAX: Final = 30.0
"""Until a silent network is said to be one, and until all goes on once it is not."""

FAULT_SECONDS_MAX: Final = 120.0
AHEAD_SECONDS: Final = 60.0
FAKETIME: Final = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
COMMAND: Final = (sys.executable, "-m", "olr_pg")

Status = dict[str, Any]


class Course:
    """One source, one target, one appliance, and what happens to them.

    Attributes:
        state: what the appliance's state is while it lasts.
        alert: what fires.
        redo: where the source's redo is read.
        threads: of the source's redo.
        state_seconds_max, recovers_seconds_max: until the state says what is the matter, and until
            it does no more once that is mended.
        lines_max: of the log.
        highest_lag_max: where nothing is the matter, or not for long.
        lags: whether the lag has to be as long as it lasts.
        environment: of the appliance.
    """

    state: str = "CAUGHT_UP"
    alert: str | None = None
    redo: str = "archived"
    threads: int = 1
    state_seconds_max: float = STATE_SECONDS_MAX
    recovers_seconds_max: float = PATIENCE
    lines_max: float = LINES_MAX
    highest_lag_max: float | None = None
    lags: bool = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        folder.chmod(0o755)  # PostgreSQL runs as another user
        self.source_folder = folder / "sim"
        self.config = self.source_folder / "olr-pg.json"
        self.data = folder / "data"
        self.data.mkdir()
        self.log = folder / "log"
        self.recording = Recording()
        self.cluster: EmbeddedPostgres | None = None
        self.source: subprocess.Popen[bytes] | None = None
        self.appliance: subprocess.Popen[bytes] | None = None
        self.environment = dict(os.environ)
        self.over = threading.Event()
        self.url = ""

    # --- what happens; courses have their own ---

    def begin(self) -> None:
        """Break something."""

    def end(self) -> None:
        """Mend it."""

    def is_told(self, status: Status) -> bool:
        """Whether the status says what is the matter."""
        return bool(status["state"]["name"] == self.state and status["health"] == "degraded")

    def goes_on(self, status: Status) -> bool:
        """Whether the status says no more what was the matter."""
        return bool(status) and not self.is_told(status)

    # --- the course of it ---

    def run(self, seconds: float) -> dict[str, Any]:
        try:
            self._start()
            return self._run(seconds)
        finally:
            self.over.set()
            self.close()

    def close(self) -> None:
        for process in (self.appliance, self.source):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
        if self.cluster is not None:
            self.cluster.stop()

    def _start(self) -> None:
        self.cluster = start_embedded(self.folder / "postgres")
        options = ("--seed", "5", "--workload", "orders", "--live", "--rate", RATE)
        more = ["--switch-seconds", str(SWITCH_SECONDS), "--flush-ms", "100", "--serve", "0"]
        more += ["--threads", str(self.threads)]
        self.source = subprocess.Popen(
            [*COMMAND, "simulate", *options, *more, "--out", str(self.source_folder)],
            stdout=subprocess.DEVNULL,
        )
        self._await("the configuration", self.config.is_file)
        document = json.loads(self.config.read_text("utf-8"))
        self.configure(document)
        self.config.write_text(json.dumps(document), "utf-8")
        with self.log.open("wb") as log:
            self.appliance = subprocess.Popen(
                [*COMMAND, "run", "--config", str(self.config), "--log-format", "json"],
                stderr=log,
                env=self.environment,
            )
        self._await("the status page", lambda: bool(self.status()))
        self._await("the first changes", lambda: is_caught_up(self.status()))

    def configure(self, document: dict[str, Any]) -> None:
        assert self.cluster is not None
        document["apply"]["connect-string"] = self.cluster.connect_string
        document["context"]["data"] = str(self.data)
        document["source"] |= {"poll-ms": POLL_MS, "redo": self.redo}
        document["target"] = {"address": "127.0.0.1:0"}
        document["status"] = {"address": "127.0.0.1:0"}

    def _run(self, seconds: float) -> dict[str, Any]:
        scraper = threading.Thread(target=self._scrape, daemon=True)
        scraper.start()
        time.sleep(min(SETTLED_SECONDS, seconds))
        lines, began = self._lines(), time.monotonic()
        self.begin()
        if self.alert is None:
            told = 0.0
        else:
            self._await(self.state, lambda: self.is_told(self.status()))
            told = time.monotonic() - began
        others = Counter[str]()
        last: Status = {}
        highest = 0.0
        while time.monotonic() - began < seconds:
            last = self.status() or last
            highest = max(highest, lag_of(last))
            if last and not self.is_told(last):
                others[last["state"]["name"]] += 1
            time.sleep(1)
        lasted = time.monotonic() - began
        self.end()
        mended = time.monotonic()
        self._await("that it goes on", lambda: self.alert is None or self.goes_on(self.status()))
        recovered = time.monotonic() - mended
        self._await("that it catches up", lambda: is_caught_up(self.status()))
        caught_up = time.monotonic() - mended
        said = [json.loads(line) for line in self._lines()[len(lines) :]]
        # The load itself has a line for each log that was read.
        grave = [one for one in said if one["message"] != "log decoded"]
        time.sleep(min(SETTLED_SECONDS, seconds))
        identical, rows = self._compare()
        self.over.set()
        scraper.join()
        fired, is_single = self._fired()
        expected = set() if self.alert is None else {self.alert}
        held = {
            "state in time": told <= self.state_seconds_max,
            "goes on in time": recovered <= self.recovers_seconds_max,
            "no other state": self.alert is None or not others,
            "few lines": len(grave) <= self.lines_max,
            "little lag": self.highest_lag_max is None or highest <= self.highest_lag_max,
            "lag not too low": not self.lags or lag_of(last) >= lasted - LAG_OFF_SECONDS,
            "no exit": self.appliance is not None and self.appliance.poll() is None,
            "identical": identical,
            # A rule waits up to five minutes.
            "alerts": fired == expected if seconds >= 360 else fired <= expected,
            "one alert": is_single,
        }
        return {
            "held": held,
            "state_after_seconds": round(told, 1),
            "other_states": dict(others),
            "lines": [one["message"] for one in grave],
            "went_on_after_seconds": round(recovered, 1),
            "lasted_seconds": round(lasted, 1),
            "caught_up_after_seconds": round(caught_up, 1),
            "lag_at_its_end": round(lag_of(last), 1),
            "highest_lag": round(highest, 1),
            "rows": rows,
            "fired": sorted(fired),
        }

    def _await(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            for process in (self.source, self.appliance):
                if process is not None and process.poll() is not None:
                    raise RuntimeError(f"{self.folder.name}: {process.args!r} has ended")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.folder.name}: {what} does not come: {self.status()}")
            time.sleep(LOOK_SECONDS)

    def _lines(self) -> list[str]:
        return self.log.read_text("utf-8").splitlines()

    def _ask(self, page: str) -> bytes:
        if not self.url:
            self.url = json.loads((self.data / "status.json").read_text())["url"]
        with urllib.request.urlopen(self.url + page, timeout=10) as answer:
            found: bytes = answer.read()
            return found

    def status(self) -> Status:
        with suppress(OSError, ValueError):
            found: Status = json.loads(self._ask("status.json"))
            return found
        return {}

    def _scrape(self) -> None:
        target = {"job": "olr_pg", "instance": self.folder.name}
        began = time.monotonic()
        while not self.over.wait(SCRAPE_SECONDS):
            at = time.monotonic() - began
            try:
                text = self._ask("metrics").decode()
            except OSError:
                self.recording.add("up", target, at, 0.0)
                continue
            self.recording.add("up", target, at, 1.0)
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    self.recording.add(sample.name, {**sample.labels, **target}, at, sample.value)

    def _fired(self) -> tuple[set[str], bool]:
        """What has fired, and whether it was never more than one alert."""
        (samples,) = [samples for name, _, samples in self.recording.items() if name == "up"]
        found = firing(alerts(), self.recording, [at for at, _ in samples])
        return set().union(*found.values()), all(len(one) <= 1 for one in found.values())

    def _compare(self) -> tuple[bool, int]:
        """End the source, wait for the last change, and compare all rows."""
        assert self.source is not None
        assert self.cluster is not None
        self.source.send_signal(signal.SIGINT)
        wanted: dict[str, int] = {}

        def has_all() -> bool:
            if not wanted:
                if not (self.source_folder / "final").is_dir():
                    return False
                time.sleep(2)  # the last of it is written
                wanted.update(last_commits(self.source_folder / "truth.jsonl"))
            assert self.cluster is not None
            with psycopg.connect(self.cluster.connect_string) as connection:
                query = "SELECT source_table, commit_scn FROM olr_pg.ledger"
                there: dict[str, int] = dict(connection.execute(query).fetchall())
            return all(there.get(table, 0) >= scn for table, scn in wanted.items())

        self._await("the last change", has_all)
        tables = load_snapshot(str(self.source_folder / "dictionary.json")).tables
        found = compare_tables(self.source_folder / "final", tables, self.cluster.connect_string)
        return all(one.identical for one in found), sum(one.target_rows for one in found)


def is_caught_up(status: Status) -> bool:
    return bool(
        status
        and status["state"]["name"] == "CAUGHT_UP"
        and status["health"] == "ok"
        and status["confirmed_scn"]
    )


def lag_of(status: Status) -> float:
    """The lag of the table that is most behind."""
    return max((table["lag_seconds"] or 0.0 for table in status.get("tables", ())), default=0.0)


def last_commits(truth: Path) -> dict[str, int]:
    """The SCN of each table's last commit."""
    found: dict[str, int] = {}
    with truth.open(encoding="utf-8") as lines:
        for line in lines:
            change = json.loads(line)
            if "table" in change:
                found[change["table"]] = change["commit_scn"]
    return found


class TargetDown(Course):
    """PostgreSQL is down."""

    state, alert, redo = "WAITING_FOR_TARGET", "OlrPgTargetUnreachable", "online"

    def begin(self) -> None:
        assert self.cluster is not None
        self.cluster.stop()

    def end(self) -> None:
        self.cluster = start_embedded(self.folder / "postgres")


class LogMissing(Course):
    """An archived log is missing."""

    state, alert = "WAITING_FOR_REDO", "OlrPgLogMissing"

    def begin(self) -> None:
        logs = self.source_folder / "logs"

        def new() -> set[Path]:
            return {one for one in logs.iterdir() if not one.name.startswith(".")} - before

        before: set[Path] = set()
        before = new()
        while not (found := new()):
            time.sleep(0.01)
        self.log_file = min(found)
        self.log_file.rename(self.folder / self.log_file.name)

    def end(self) -> None:
        (self.folder / self.log_file.name).rename(self.log_file)


class LogMissingInThread(LogMissing):
    """An archived log of one of two redo threads is missing; the other one goes on."""

    threads = 2


class DiskFull(Course):
    """The disk of `context.data` is full."""

    state, alert, redo = "WAITING_FOR_DISK", "OlrPgDiskFull", "online"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        options = ["-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs"]
        subprocess.run(["mount", *options, self.data], check=True)

    def close(self) -> None:
        super().close()
        subprocess.run(["umount", "--lazy", self.data], check=True)

    def begin(self) -> None:
        with (self.data / "ballast").open("wb", buffering=0) as file:
            with suppress(OSError):
                while True:
                    file.write(bytes(1 << 20))
            with suppress(OSError):
                while True:
                    file.write(bytes(4096))

    def end(self) -> None:
        (self.data / "ballast").unlink()


class TableStopped(Course):
    """A table refuses a row."""

    state, alert, redo = "TARGET_BEHIND", "OlrPgTableStopped", "online"

    def _sql(self, statement: str) -> None:
        assert self.cluster is not None
        with psycopg.connect(self.cluster.connect_string, autocommit=True) as connection:
            connection.execute(statement)

    def begin(self) -> None:
        self._sql("ALTER TABLE shop.order_lines ADD CONSTRAINT none CHECK (false) NOT VALID")

    def end(self) -> None:
        self._sql("ALTER TABLE shop.order_lines DROP CONSTRAINT none")
        subprocess.run(
            [*COMMAND, "errors", "retry", "--config", str(self.config)],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def is_told(self, status: Status) -> bool:
        # The others go on, so that what decoding does is said as ever.
        stopped = [table["name"] for table in status.get("tables", ()) if table["stopped"]]
        return bool(stopped == ["SHOP.ORDER_LINES"] and status["health"] == "degraded")


class SourceDown(Course):
    """The source's listener refuses everybody."""

    state, alert = "WAITING_FOR_SOURCE", "OlrPgSourceUnreachable"

    def configure(self, document: dict[str, Any]) -> None:
        super().configure(document)
        address, _, service = document["source"]["server"].rpartition("/")
        host, _, port = address.rpartition(":")
        self.door = Door((host.removeprefix("//"), int(port)))
        document["source"]["server"] = f"127.0.0.1:{self.door.port}/{service}"

    def begin(self) -> None:
        self.door.shut()

    def end(self) -> None:
        self.door.open()


class TableLocked(TableStopped):
    """Somebody locks a table."""

    alert = "OlrPgTableBlocked"
    state_seconds_max, lags = 20.0, True

    def begin(self) -> None:
        assert self.cluster is not None
        self.locker = psycopg.connect(self.cluster.connect_string, application_name="night job")
        self.locker.execute("LOCK TABLE shop.order_lines")

    def end(self) -> None:
        self.locker.close()

    def is_told(self, status: Status) -> bool:
        blocked = [table["name"] for table in status.get("tables", ()) if table["blocked"]]
        named = any("'night job'" in problem for problem in status.get("problems", ()))
        return blocked == ["SHOP.ORDER_LINES"] and named and status["health"] == "degraded"


class TargetSilent(Course):
    """The network to PostgreSQL accepts everything and passes nothing on."""

    state, alert, redo = "WAITING_FOR_TARGET", "OlrPgTargetUnreachable", "online"
    state_seconds_max = recovers_seconds_max = SILENT_SECONDS_MAX
    lags = True

    def configure(self, document: dict[str, Any]) -> None:
        super().configure(document)
        self.target_proxy = before_target(document)

    def begin(self) -> None:
        self.target_proxy.silence("requests", "answers")

    def end(self) -> None:
        self.target_proxy.silence()


class SourceSilent(Course):
    """The network to the source accepts everything and passes nothing on."""

    state, alert = "WAITING_FOR_SOURCE", "OlrPgSourceUnreachable"
    state_seconds_max = recovers_seconds_max = SILENT_SECONDS_MAX
    lags = True

    def configure(self, document: dict[str, Any]) -> None:
        super().configure(document)
        self.source_proxy = before_source(document)

    def begin(self) -> None:
        self.source_proxy.silence("requests", "answers")

    def end(self) -> None:
        self.source_proxy.silence()


class Network(Course):
    """Both networks do whatever networks do, at random."""

    redo, lines_max = "online", float("inf")
    seed = 1

    def configure(self, document: dict[str, Any]) -> None:
        super().configure(document)
        self.proxies = [before_target(document), before_source(document)]
        self._ending = threading.Event()
        self._faults = threading.Thread(target=self._disturb, daemon=True)

    def begin(self) -> None:
        self._faults.start()

    def end(self) -> None:
        self._ending.set()
        self._faults.join()

    def _disturb(self) -> None:
        drawn = random.Random(self.seed)
        while not self._ending.is_set():
            proxy = drawn.choice(self.proxies)
            match drawn.choice(("delay", "cut", "reset", "silent", "silent")):
                case "delay":
                    proxy.delay(2.0)
                case "silent":
                    both = ("requests", "answers")
                    proxy.silence(*drawn.choice((both, both[:1], both[1:])))
                case how:
                    proxy.cut(reset=how == "reset")
            self._ending.wait(drawn.uniform(1.0, FAULT_SECONDS_MAX))
            proxy.delay(0.0)
            proxy.silence()
            self._ending.wait(drawn.uniform(1.0, SILENT_SECONDS_MAX))


def before_target(document: dict[str, Any]) -> Proxy:
    """A proxy before PostgreSQL, and the configuration with it."""
    given = conninfo_to_dict(document["apply"]["connect-string"])
    place = (str(given["host"]), int(str(given["port"])))
    proxy = Proxy("none", lambda: place)
    document["apply"]["connect-string"] = make_conninfo("", **given | {"port": proxy.port})
    return proxy


def before_source(document: dict[str, Any]) -> Proxy:
    """A proxy before the source's listener, and the configuration with it."""
    address, _, service = document["source"]["server"].rpartition("/")
    host, _, port = address.rpartition(":")
    proxy = Proxy("none", lambda: (host.removeprefix("//"), int(port)))
    document["source"]["server"] = f"127.0.0.1:{proxy.port}/{service}"
    return proxy


class ClockMoved(Course):
    """Somebody sets the appliance's clock; that of what writes its files goes right."""

    redo, highest_lag_max = "online", LAG_SECONDS_MAX

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.offset = folder / "offset"
        self._move(0)
        self.environment |= {
            "LD_PRELOAD": str(FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self.offset),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }

    def _move(self, seconds: int) -> None:
        new = self.offset.with_suffix(".new")
        new.write_text(f"{seconds:+d}")
        new.rename(self.offset)

    def begin(self) -> None:
        self._move(3600)
        time.sleep(AHEAD_SECONDS)
        self._move(-3600)

    def end(self) -> None:
        self._move(0)


class Quiet(Course):
    """Nothing goes wrong."""

    highest_lag_max = LAG_SECONDS_MAX


class Door:
    """What stands before a port: open, or shut as if nobody listened there."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._sockets: set[socket.socket] = set()
        self.port = 0
        self.open()

    def open(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def shut(self) -> None:
        for one in (self._listener, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._sockets.clear()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(self._address)
                self._sockets |= {client, server}
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=_pump, args=pair, daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for one in (source, sink):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


COURSES: Final[dict[str, type[Course]]] = {
    "target": TargetDown,
    "gap": LogMissing,
    "thread": LogMissingInThread,
    "disk": DiskFull,
    "table": TableStopped,
    "source": SourceDown,
    "lock": TableLocked,
    "silent-target": TargetSilent,
    "silent-source": SourceSilent,
    "network": Network,
    "clock": ClockMoved,
    "quiet": Quiet,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="how long each lasts")
    parser.add_argument("--only", choices=COURSES, action="append", help="these courses only")
    parser.add_argument("--keep", action="store_true", help="leave what was written")
    parser.add_argument("--seed", type=int, default=1, help="of the course `network`")
    options = parser.parse_args()
    Network.seed = options.seed
    lacking = {"disk"} if os.geteuid() else set()
    lacking |= {"clock"} if FAKETIME is None else set()
    names = options.only or [name for name in COURSES if name not in lacking]
    folder = Path(tempfile.mkdtemp(prefix="olr-pg-outages-"))
    folder.chmod(0o755)
    outcome: dict[str, Any] = {}

    def run(name: str) -> None:
        try:
            outcome[name] = COURSES[name](folder / name).run(60 * options.minutes)
        except Exception as error:  # noqa: BLE001 - the others go on
            outcome[name] = {"held": {"the course": False}, "error": str(error)}

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(run, names))
    print(json.dumps(outcome, indent=1))  # noqa: T201
    if all(all(one["held"].values()) for one in outcome.values()):
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
        return 0
    print(f"logs are in {folder}", file=sys.stderr)  # noqa: T201
    return 1


if __name__ == "__main__":
    sys.exit(main())
