"""A soak of the whole appliance: a live workload, and every part killed at random, for a while.

    uv run python tests/soak.py --minutes 60 [--online]

A simulated database takes orders and archives its logs; ``olr-pg run`` replicates them into a
PostgreSQL. Meanwhile the appliance is killed or told to end, and started again, as a container's
supervisor does; PostgreSQL, its backends, Spark's workers and its Java are killed; the source
stands still; and noise, half requests and silent connections come to the port. Archived logs that
no start needs any more are deleted, as a retention policy does. In the second part
the appliance itself is left alone, so that its memory can be judged over one long life.

At the end, the source commits and archives what is open, and then must hold: all tables are
identical; the memory of the long life grew by at most 1 % once it was warm (judged from five
minutes on: less says nothing); no descriptors, threads or temporary files were left behind, and no
processes; the target's password is in no log, status or process list. The figures are printed as
JSON. Exit code 0 when all held.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil
import psycopg
from psycopg.conninfo import conninfo_to_dict

from olr_pg.appliance.demo_run import DemoSource, compare_tables
from olr_pg.bench.measure import memory_mib
from olr_pg.capture.logs import open_log
from olr_pg.config.reading import load_config
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import OlrPgError
from olr_pg.monitor.status_client import ask_status
from olr_pg.postgres.embedded import EmbeddedPostgres, start_embedded
from olr_pg.server.checkpoint import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_SECONDS = 0.5
FAULT_SECONDS = 6.0
"""On average, between two faults; a short soak has eight of them all the same."""

END_SHARE = 0.25
"""Of the whole: while the appliance is ended, too; not in a soak of less than a minute."""

WARM_LOGS = 3
"""A life is looked at once it has decoded so many logs: Java, Spark and kernels are there then."""

START_SECONDS = 300.0
CATCH_UP_SECONDS = 600.0
WARM_SHARE = 0.25
"""Of the long life: what is not judged."""

JUDGED_SECONDS_MIN = 300.0
GROWTH_MAX = 0.01
SPARE_DESCRIPTORS = 6  # connections to PostgreSQL that were opened again, for one
SPARE_THREADS = 3
SPARE_FILES = 8  # what tasks and Spark's blocks have for a while
SOURCE_RATE = 60_000


def _files_below(folder: Path) -> list[str]:
    """Files in a tree that changes meanwhile."""
    return [name for _, _, names in os.walk(folder) for name in names]


class Sample(NamedTuple):
    """The appliance's own process, at a moment."""

    at: float
    resident: int
    anonymous_mib: float
    descriptors: int
    threads: int
    files: int


class Appliance:
    """``olr-pg run`` in a process, started again whenever it has ended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "config.json"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.lives = 0
        self.exit_codes = Counter[int]()
        self.began = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def look_after(self) -> bool:
        """Start it where it does not run; whether that was so."""
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                return False
            self.exit_codes[code] += 1
        self._end_orphans()
        self.lives += 1
        self.began = time.monotonic()
        with (self.folder / f"appliance-{self.lives}.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "olr_pg", "run", "--config", str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={**os.environ, "TMPDIR": str(self.temporary)},
                start_new_session=True,
            )
        return True

    def descendants(self, name: str) -> list[psutil.Process]:
        """Processes below it whose command line has that word."""
        found = []
        with suppress(psutil.NoSuchProcess):
            for one in psutil.Process(self.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    if name in " ".join(one.cmdline()):
                        found.append(one)
        return found

    def _end_orphans(self) -> None:
        """What a killed life left: a container would be gone as a whole."""
        for one in self.orphans():
            with suppress(psutil.NoSuchProcess):
                one.kill()

    def orphans(self) -> list[psutil.Process]:
        """Processes of ours that outlived the appliance: they have its temporary directory."""
        mine = f"{self.temporary}"
        found = []
        for one in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if one.environ().get("TMPDIR") == mine:
                    found.append(one)
        return found

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(number)

    def end(self) -> int:
        """SIGTERM, and its exit code."""
        assert self._process is not None
        self.send(signal.SIGTERM)
        try:
            return self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def sample(self) -> Sample | None:
        """None where it has just ended."""
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            with process.oneshot():
                # Spark makes up to 64 empty directories for blocks, one after the other.
                files = _files_below(self.temporary)
                return Sample(
                    time.monotonic(),
                    process.memory_info().rss,
                    memory_mib(process.pid, "RssAnon"),
                    process.num_fds(),
                    process.num_threads(),
                    len(files),
                )
        return None


class Soak:
    """One run of it."""

    def __init__(self, folder: Path, seconds: float, seed: int, *, online: bool = False) -> None:
        self.folder = folder
        self.online = online
        self.seconds = seconds
        self.fault_seconds = min(FAULT_SECONDS, seconds / 8)
        self.random = random.Random(seed)
        self.faults = Counter[str]()
        self.samples: list[Sample] = []
        self.source = DemoSource(folder / "source", seed, SOURCE_RATE)
        self.postgres: EmbeddedPostgres | None = None
        self.appliance = Appliance(folder)
        self.noise: list[socket.socket] = []
        self.redo_bytes = 0

    # --- the course of it ---

    def run(self) -> dict[str, Any]:
        try:
            return self._run()
        finally:
            for one in self.noise:
                one.close()
            if self.appliance.lives:
                self.appliance.send(signal.SIGKILL)
                for orphan in self.appliance.orphans():
                    with suppress(psutil.NoSuchProcess):
                        orphan.kill()
            self.source.abandon()
            if self.postgres is not None:
                self.postgres.stop()

    def _run(self) -> dict[str, Any]:
        self.source.wait_until_archiving()
        self.source.pause()
        self.postgres = start_embedded(self.folder / "postgres")
        self._configure()
        self.appliance.look_after()
        self._await("the first changes", lambda: self._applied() > 0, START_SECONDS)
        self.source.resume()
        began = time.monotonic()
        end_seconds = END_SHARE * self.seconds if self.seconds >= 60 else 0.0
        self._disturb(began + end_seconds, [*self._faults(), *self._ends()])
        self.appliance.look_after()
        before = self._at_rest()
        until = time.monotonic() + self.seconds - end_seconds
        self._disturb(until, self._faults(), samples=True)
        life = time.monotonic() - self.appliance.began
        self.source.stop()
        wanted = self.source.last_commits()
        self._await("the last changes", lambda: self._has(wanted), CATCH_UP_SECONDS)
        after = self._at_rest()
        status = self._status()
        told = self._secrets_told(status)
        exit_code = self.appliance.end()
        return self._judge(status, exit_code, life, told, (before, after))

    def _configure(self) -> None:
        assert self.postgres is not None
        document = {
            "context": {"data": "data"},
            "source": {
                "kind": "offline",
                "dictionary": "source/dictionary.json",
                "logs": "source/logs",
                **({"redo": "online", "online-logs": "source/online"} if self.online else {}),
            },
            "target": {"address": ":0", "limits": {"request-seconds": 2, "idle-seconds": 4}},
            "apply": {
                "connect-string": self.postgres.connect_string,
                "tables": "SELECT OWNER, TABLE_NAME FROM USER_TABLES",
                "create-tables": True,
            },
            "spark": {"master": "local[2,4]"},
            "status": {"address": ":0"},
        }
        self.appliance.config.write_text(json.dumps(document), "utf-8")

    def _await(self, what: str, condition: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            self.appliance.look_after()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} did not come in {seconds:.0f} s, see {self.folder}")
            time.sleep(LOOK_SECONDS)

    def _disturb(
        self, until: float, faults: list[Callable[[], str]], *, samples: bool = False
    ) -> None:
        due = time.monotonic() + self.random.expovariate(1 / self.fault_seconds)
        while time.monotonic() < until:
            if self.appliance.look_after() and samples:
                self.samples.clear()  # a life of its own ended: the next one is judged
            if time.monotonic() >= due:
                self._delete_logs()
                self.faults[self.random.choice(faults)()] += 1
                due = time.monotonic() + self.random.expovariate(1 / self.fault_seconds)
            sample = self.appliance.sample() if samples and self._is_warm() else None
            if sample is not None:
                self.samples.append(sample)
            time.sleep(LOOK_SECONDS)

    # --- faults ---

    def _faults(self) -> list[Callable[[], str]]:
        return [
            self._kill_backend,
            self._kill_postgres,
            self._kill_worker,
            self._stop_source,
            self._make_noise,
            self._leave_half_requests,
        ]

    def _ends(self) -> list[Callable[[], str]]:
        return [self._kill_appliance, self._end_appliance, self._kill_java]

    def _kill_backend(self) -> str:
        with suppress(psycopg.Error), self._connection() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name LIKE 'olr_pg%' ORDER BY random() LIMIT 1"
            )
        return "backend killed"

    def _kill_postgres(self) -> str:
        assert self.postgres is not None
        server = psutil.Process(self.postgres.pid)
        server.kill()
        psutil.wait_procs([server], 30)
        started = start_embedded(self.folder / "postgres")
        self.postgres.stop()  # the handle only: another one has the cluster
        self.postgres = started
        return "PostgreSQL killed"

    def _kill_worker(self) -> str:
        workers = self.appliance.descendants("olr_pg.spark.daemon")
        for worker in self.random.sample(workers, min(1, len(workers))):
            with suppress(psutil.NoSuchProcess):
                worker.kill()
        return "Spark worker killed" if workers else "no Spark worker to kill"

    def _delete_logs(self) -> None:
        """What a retention policy does: remove the logs that no start needs any more."""
        checkpoint = self.folder / "data" / FILE_NAME
        if not checkpoint.exists():
            return
        needed = json.loads(checkpoint.read_text("utf-8"))["min_start_scn"]
        logs = (self.folder / "source" / "logs").glob("[!.]*")
        ended = [log for log in map(open_log, map(str, logs)) if log.next_scn <= needed]
        for log in ended:
            self.redo_bytes += log.size
            Path(log.path).unlink()

    def _stop_source(self) -> str:
        self.source.pause()
        time.sleep(self.random.uniform(0.2, 2.0))
        self.source.resume()
        return "source stopped for a while"

    def _port(self) -> tuple[str, int] | None:
        with suppress(OlrPgError):
            host, _, port = self._status()["port"]["address"].rpartition(":")
            return host, int(port)
        return None

    def _make_noise(self) -> str:
        address = self._port()
        for _ in range(20):
            with suppress(OSError):
                if address is None:
                    break
                with socket.create_connection(address, 5) as scanner:
                    scanner.sendall(self.random.randbytes(self.random.randint(1, 5000)))
        return "noise at the port"

    def _leave_half_requests(self) -> str:
        for one in self.noise:
            one.close()
        self.noise = []
        address = self._port()
        for _ in range(100):
            with suppress(OSError):
                if address is None:
                    break
                one = socket.create_connection(address, 5)
                self.noise.append(one)
                one.sendall(b"\x10\x00\x00\x00\x01")
        return "100 half requests"

    def _kill_appliance(self) -> str:
        self.appliance.send(signal.SIGKILL)
        return "appliance killed"

    def _end_appliance(self) -> str:
        self.appliance.send(signal.SIGTERM)
        return "appliance told to end"

    def _kill_java(self) -> str:
        java = self.appliance.descendants("org.apache.spark")
        for one in java:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        return "Java killed" if java else "no Java to kill"

    # --- what is looked at ---

    def _connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        assert self.postgres is not None
        return psycopg.connect(
            self.postgres.connect_string, autocommit=True, application_name="soak"
        )

    def _ledger(self) -> dict[str, int]:
        with suppress(psycopg.Error), self._connection() as connection:
            return dict(
                connection.execute("SELECT source_table, commit_scn FROM olr_pg.ledger").fetchall()
            )
        return {}

    def _applied(self) -> int:
        return max(self._ledger().values(), default=0)

    def _has(self, wanted: dict[str, int]) -> bool:
        ledger = self._ledger()
        return all(ledger.get(table, 0) >= scn for table, scn in wanted.items())

    def _status(self) -> dict[str, Any]:
        return ask_status(load_config(self.appliance.config))

    def _is_warm(self) -> bool:
        with suppress(OlrPgError):
            return bool(self._status()["source"]["logs"] >= WARM_LOGS)
        return False

    def _at_rest(self) -> Sample:
        """The appliance once it is warm and nobody is connected (its applier needs not be)."""
        for one in self.noise:
            one.close()
        self.noise = []

        def rests() -> bool:
            with suppress(OlrPgError):
                return self._is_warm() and self._status()["port"]["connections"] == 0
            return False

        self._await("a warm life at rest", rests, START_SECONDS)
        sample = self.appliance.sample()
        assert sample is not None
        return sample

    def _secrets_told(self, status: dict[str, Any]) -> list[str]:
        """Where the target's password can be read that is no place for it."""
        assert self.postgres is not None
        secret = conninfo_to_dict(self.postgres.connect_string)["password"]
        assert isinstance(secret, str)
        found = [f.name for f in self.folder.glob("*.log") if secret in f.read_text("utf-8")]
        if secret in json.dumps(status):
            found.append("status")
        for one in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if secret in " ".join(one.cmdline()):
                    found.append(one.name())
        return found

    # --- the verdict ---

    def _judge(
        self,
        status: dict[str, Any],
        exit_code: int,
        life: float,
        told: list[str],
        at_rest: tuple[Sample, Sample],
    ) -> dict[str, Any]:
        assert self.postgres is not None
        tables = load_snapshot(str(self.folder / "source" / "dictionary.json")).tables
        outcomes = compare_tables(
            self.folder / "source" / "final", tables, self.postgres.connect_string
        )
        with self._connection() as connection:
            errors = connection.execute("SELECT count(*) FROM olr_pg.error").fetchone()
        warm = self.samples[int(len(self.samples) * WARM_SHARE) :]
        seconds = warm[-1].at - warm[0].at if warm else 0.0
        growth = growth_of(warm)
        first, last = at_rest
        left = sorted(str(file) for file in self.appliance.temporary.rglob("*") if file.is_file())
        held = {
            "tables identical": all(one.identical for one in outcomes),
            "no errors recorded": errors == (0,),
            "nothing unaccounted for": status["source"]["losses"] == 0,
            "memory flat": seconds < JUDGED_SECONDS_MIN or growth <= GROWTH_MAX,
            "no descriptors leaked": last.descriptors - first.descriptors <= SPARE_DESCRIPTORS,
            "no threads leaked": last.threads - first.threads <= SPARE_THREADS,
            "no temporary files leaked": last.files - first.files <= SPARE_FILES,
            "nothing left behind": not left and not self.appliance.orphans(),
            "no secret told": not told,
            "ended as told": exit_code == 128 + signal.SIGTERM,
        }
        return {
            "held": held,
            "seconds": round(self.seconds),
            "faults": dict(self.faults),
            "lives": self.appliance.lives,
            "exit_codes": dict(self.appliance.exit_codes),
            "last_life_seconds": round(life),
            "redo_bytes": self.redo_bytes,
            "rows": {one.name: one.target_rows for one in outcomes},
            "changes_of_last_life": sum(
                table["inserted"] + table["updated"] + table["deleted"]
                for table in status["tables"]
            ),
            "refused": status["port"]["refused"],
            "logs_kept": sum(1 for _ in (self.folder / "source/logs").iterdir()),
            "memory": {
                "judged": seconds >= JUDGED_SECONDS_MIN,
                "judged_seconds": round(seconds),
                "growth_percent": round(100 * growth, 3),
                "median_mib": round(statistics.median(s.resident for s in warm) / 2**20, 1)
                if warm
                else None,
                "course_mib": course_of([s.resident / 2**20 for s in warm]),
                "anonymous_course_mib": course_of([s.anonymous_mib for s in warm]),
            },
            "descriptors": [first.descriptors, last.descriptors],
            "threads": [first.threads, last.threads],
            "files": [first.files, last.files],
            "left_behind": left,
        }


def growth_of(samples: list[Sample]) -> float:
    """How much the resident memory grew over the samples by its trend, as a share of its mean."""
    if len(samples) < 2:
        return 0.0
    line = statistics.linear_regression(
        [s.at for s in samples], [float(s.resident) for s in samples]
    )
    mean = statistics.fmean(s.resident for s in samples)
    return float(line.slope * (samples[-1].at - samples[0].at) / mean)


def course_of(sizes: list[float], parts: int = 10) -> list[float]:
    """The median in each of so many parts of some samples."""
    bounds = [len(sizes) * part // parts for part in range(parts + 1)]
    return [
        round(statistics.median(sizes[start:end]), 1)
        for start, end in pairwise(bounds)
        if end > start
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=3.0, help="of workload  [3]")
    parser.add_argument("--seed", type=int, default=1, help="of workload and faults  [1]")
    parser.add_argument("--online", action="store_true", help="online logs are read as well")
    parser.add_argument("--keep", action="store_true", help="keep the folder in any case")
    options = parser.parse_args()
    # Not in a folder that only root may enter: PostgreSQL runs as another user.
    folder = Path(tempfile.mkdtemp(prefix="olr-pg-soak-"))
    folder.chmod(0o755)
    sys.stderr.write(f"soak: seed {options.seed}, {options.minutes} minutes, in {folder}\n")
    outcome = Soak(folder, options.minutes * 60, options.seed, online=options.online).run()
    sys.stdout.write(json.dumps(outcome, indent=2) + "\n")
    held = all(outcome["held"].values())
    if held and not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
