"""Runs whose system calls fail, one call in each life.

In the first life, one call on a log or on a file of `context.data` fails, or reads or writes only
half. The second life goes on from what the first left. Run all of them, which takes an hour, with
``python -m tests.appliance.failing_calls``; ``--only TEXT`` takes those whose line contains a text.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.appliance.test_kills_between_writes import write_config
from tests.cli.fork_server import ForkServer, fork_server
from tests.replicator.test_simulated import check_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.simulator.simulated_files import Summary

HALF: Final = 0
"""Instead of a number of errno: the call reads or writes half of what it was asked for."""

ERRORS: Final = {
    "create": (errno.EIO, errno.ENOSPC, errno.EMFILE),
    "open": (errno.EIO, errno.EMFILE, errno.EACCES),
    "read": (errno.EIO, HALF),
    "pread": (errno.EIO, HALF),
    "write": (errno.EIO, errno.ENOSPC, errno.EDQUOT, HALF),
    "pwrite": (errno.EIO, errno.ENOSPC, HALF),
    "fsync": (errno.EIO, errno.ENOSPC, errno.EDQUOT),
    "rename": (errno.EIO, errno.ENOSPC),
    "unlink": (errno.EIO, errno.EACCES),
    "mkdir": (errno.EIO, errno.ENOSPC),
    "opendir": (errno.EIO, errno.EMFILE),
    "readdir": (errno.EIO,),
    "flock": (errno.ENOLCK, errno.EIO),
    "mmap": (errno.ENOMEM,),
}
"""What the manual page of each call lists, as far as a machine and not our code can cause it."""


class Fault(NamedTuple):
    """A call that fails: the first one is number 1.

    Attributes:
        share: a part of the path.
    """

    call: str
    share: str
    number: int
    error: int

    def __str__(self) -> str:
        what = errno.errorcode.get(self.error, "HALF")
        return f"{self.call} {self.share} {self.number} {what}"


def compiled(folder: Path) -> Path | None:
    """The library that lets calls fail; None where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    source, library = Path(__file__).with_suffix(".c"), folder / "failing_calls.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


@contextmanager
def failing_server(library: Path) -> Iterator[ForkServer]:
    """A server of commands whose calls can fail."""
    before = os.environ.get("LD_PRELOAD")
    os.environ["LD_PRELOAD"] = str(library)
    try:
        # The server has started when it answers; until then its environment is this one.
        with fork_server("tests.simulation.warm") as server:
            server.run(["--version"], library.parent, dict(os.environ))
            os.environ.pop("LD_PRELOAD")
            yield server
    finally:
        if before is None:
            os.environ.pop("LD_PRELOAD", None)
        else:
            os.environ["LD_PRELOAD"] = before


def made_source(folder: Path) -> Summary:
    """Some logs."""
    shape = replace(choose_shape(3, "orders"), pace=Pace(log_blocks=200))
    return simulate(3, folder / "sim", workload="orders", size=500_000, shape=shape)


class Lives:
    """A run on copies of the same logs, with an empty target.

    Args:
        folder: contains the source (`sim`), and gets the run's files.
    """

    def __init__(self, server: ForkServer, made: Summary, folder: Path, database: str) -> None:
        self._server, self._made, self._database = server, made, database
        self._folder = folder
        sim = made.logs[0].parent.parent
        shutil.copytree(sim, folder / "sim")  # with `folder`
        self._config = write_config(folder, database)

    def live(self, **environ: str) -> str:
        """Run to the end; what it says on stderr if it fails, after checking that this is an error
        of the catalogue that is no defect."""
        folder = {"FAILING_CALLS_BELOW": f"{self._folder}/"} if environ else {}
        command = ["run", "--once", "--config", str(self._config)]
        done = self._server.run(command, self._folder, {**os.environ, **folder, **environ})
        if done.returncode == 0:
            check_tables(self._made, self._database)
            return ""
        assert re.search(r"^OLR-\d{5}: ", done.stderr, re.MULTILINE), done.stderr
        assert "  to do: " in done.stderr
        assert "OLR-09001" not in done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr

    def calls(self) -> Counter[tuple[str, str]]:
        """How often each (call, name of a file or log) comes in a life."""
        log = self._folder.parent / "calls"
        assert self.live(FAILING_CALLS_LOG=str(log)) == ""
        lines = [line.split(" ", 1) for line in log.read_text("utf-8").splitlines()]
        log.unlink()
        return Counter((call, _share(path, self._folder)) for call, path in lines)

    def fail(self, fault: Fault) -> str:
        """Let a call fail in the first life; what that life said, empty if it did not notice. The
        second life must complete the target."""
        rule = f"{fault.call} {fault.share} {fault.number} {fault.error}"
        said = self.live(FAILING_CALL=rule)
        assert self.live() == ""
        return said


def _share(path: str, folder: Path) -> str:
    name = path.removeprefix(f"{folder}/")
    if name.startswith("sim/logs/"):
        return "sim/logs/"
    return re.sub(r"-[a-z0-9_]{8}$", "-", name)


def faults(calls: Counter[tuple[str, str]]) -> Iterator[Fault]:
    """Each error of each call: of all calls on a file of the state, of some on a log."""
    for (call, share), count in sorted(calls.items()):
        step = 1 if share.startswith("data") else max(1, count // 8)
        for error in ERRORS.get(call, ()):
            for number in range(1, count + 1, step):
                yield Fault(call, share, number, error)


def main() -> None:
    """Go through all faults; print those after which something is wrong."""
    import psycopg

    from tests.postgres.own_cluster import own_cluster

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the fault's line")
    only = parser.parse_args().only
    with own_cluster("fsync = off") as cluster, tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        library = compiled(folder)
        assert library is not None, "a C compiler is needed"
        made = made_source(folder)
        with failing_server(library) as server:

            def lives(number: int) -> Lives:
                place = folder / f"life-{number}"
                database = f"life_{number}"
                with psycopg.connect(cluster.connect_string, autocommit=True) as connection:
                    connection.execute(f"CREATE DATABASE {database}".encode())
                target = f"{cluster.connect_string} dbname={database}"
                return Lives(server, made, place, target)

            wanted = [one for one in faults(lives(0).calls()) if only in str(one)]
            wrong = 0
            for number, fault in enumerate(wanted, 1):
                try:
                    said = lives(number).fail(fault).strip().splitlines()
                    end = next((line for line in said if line.startswith("OLR-")), "went on")
                    print(fault, "|", end, flush=True)  # noqa: T201
                    shutil.rmtree(folder / f"life-{number}")
                except AssertionError as error:
                    wrong += 1
                    print(fault, "| WRONG:", str(error)[-2000:], flush=True)  # noqa: T201
            print(f"{len(wanted)} faults, {wrong} of them with a wrong end")  # noqa: T201


if __name__ == "__main__":
    main()
