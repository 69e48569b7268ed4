"""Runs whose system calls fail, one call in each life, and commands whose output fails.

In the first life, one call on a log or on a file of `context.data` fails, reads or writes only
half, or finds the file deleted. The second life goes on from what the first left. Run all of them,
which takes an hour for each scene, with ``python -m tests.appliance.failing_calls --scene NAME``;
``--only TEXT`` takes those whose line matches a regular expression. A scene of `OUTPUTS` is a
command that writes files: with an error, none of them may look whole and be cut.
"""

from __future__ import annotations

import argparse
import base64
import errno
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.simulator.database_shape import choose_shape, demo_shape
from olr_pg.simulator.sessions.row_shape import RowShape
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.appliance.test_kills_between_writes import write_config
from tests.cli.fork_server import ForkServer, fork_server
from tests.oracle.live_source import LiveSource
from tests.replicator.test_simulated import check_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.simulator.simulated_files import Summary

HALF: Final = 0
"""Instead of a number of errno: the call reads or writes half of what it was asked for."""

GONE: Final = -1
"""Instead of a number of errno: the file is deleted before it is opened."""

ERRORS: Final = {
    "create": (errno.EIO, errno.ENOSPC, errno.EMFILE),
    "open": (errno.EIO, errno.EMFILE, errno.EACCES, GONE),
    "read": (errno.EIO, HALF),
    "pread": (errno.EIO, HALF),
    "write": (errno.EIO, errno.ENOSPC, errno.EDQUOT, HALF),
    "pwrite": (errno.EIO, errno.ENOSPC, HALF),
    "fallocate": (errno.ENOSPC, errno.EDQUOT, errno.EIO),
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
        share: a part of the path, a pattern of fnmatch.
    """

    call: str
    share: str
    number: int
    error: int

    def __str__(self) -> str:
        what = errno.errorcode.get(self.error) or ("GONE" if self.error == GONE else "HALF")
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
        with fork_server("tests.simulation.warm", "tests.appliance.little_memory") as server:
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
    shape = replace(choose_shape(3, "orders"), pace=Pace(log_blocks=100))
    return simulate(3, folder / "sim", workload="orders", size=200_000, shape=shape)


def large_source(folder: Path) -> Summary:
    """Logs of a large transaction."""
    rows = RowShape(columns=20, statements=0)
    shape = replace(demo_shape(), rows=rows, pace=Pace(log_blocks=150))
    return simulate(3, folder / "sim", workload="wide", size=200_000, shape=shape)


class Scene(NamedTuple):
    """What the lives are like.

    Attributes:
        make: makes the source.
        is_encrypted: whether a key is set.
        targets: the number of targets.
        is_restored: whether an earlier life has read the first half of the logs.
        is_live: whether the logs are those of a live source, and are copied into a vault.
    """

    make: Callable[[Path], Summary] = made_source
    is_encrypted: bool = False
    targets: int = 1
    is_restored: bool = False
    is_live: bool = False


SCENES: Final = {
    "once": Scene(),
    "large": Scene(large_source, is_restored=True),
    "encrypted": Scene(large_source, is_encrypted=True, is_restored=True),
    "targets": Scene(targets=2),
    "sealed-targets": Scene(targets=2, is_encrypted=True),
    "vault": Scene(is_live=True),
    "sealed-vault": Scene(is_live=True, is_encrypted=True),
}


class Lives:
    """Runs on copies of the same logs, with empty targets.

    Args:
        folder: contains the source (`sim`), and gets the run's files.
        databases: a connection string for each target.
    """

    def __init__(
        self,
        server: ForkServer,
        made: Summary,
        folder: Path,
        databases: Sequence[str],
        scene: Scene = SCENES["once"],
    ) -> None:
        self._server, self._made, self._databases = server, made, databases[: scene.targets]
        self._folder = folder
        sim = made.logs[0].parent.parent
        shutil.copytree(sim, folder / "sim")  # with `folder`
        self._live = LiveSource(made, folder) if scene.is_live else None
        if self._live is None:
            self._config = write_config(folder, databases[0])
        else:
            self._live.archive_all()
            vault = {"directory": str(folder / "data" / "vault")}
            self._config = self._live.write_config(folder, databases[0], vault=vault)
        document = json.loads(self._config.read_text("utf-8"))
        if scene.targets > 1:
            del document["target"]
            apply = document.pop("apply")
            document["target"] = [
                {"name": f"t{number}", "apply": {**apply, "connect-string": database}}
                for number, database in enumerate(self._databases)
            ]
        if scene.is_encrypted:
            document["context"]["encryption-key"] = base64.b64encode(bytes(32)).decode()
        self._config.write_text(json.dumps(document), "utf-8")
        if scene.is_restored:
            logs = sorted((folder / "sim" / "logs").iterdir())
            later = [(log, log.rename(folder / log.name)) for log in logs[len(logs) // 2 :]]
            done = self._run()
            assert done.returncode == 0, done.stderr
            for log, moved in later:
                moved.rename(log)

    def _run(self, **environ: str) -> subprocess.CompletedProcess[str]:
        folder = {"FAILING_CALLS_BELOW": f"{self._folder}/"} if environ else {}
        command = ["run", "--once", "--config", str(self._config)]
        return self._server.run(command, self._folder, {**os.environ, **folder, **environ})

    def close(self) -> None:
        """End the live source."""
        if self._live is not None:
            self._live.close()

    def lose_read_logs(self) -> None:
        """Remove the logs that the earlier life has read; with its image, nothing needs them."""
        logs = sorted((self._folder / "sim" / "logs").iterdir())
        for log in logs[: len(logs) // 2]:
            log.unlink()

    def live(self, **environ: str) -> str:
        """Run to the end; what it says on stderr if it fails, after checking that this is an error
        of the catalogue that is no defect."""
        done = self._run(**environ)
        if done.returncode == 0:
            for database in self._databases:
                check_tables(self._made, database)
            return ""
        check_told(done.stderr)
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
        after = self.live()
        assert after == "", after
        return said


class Outputs:
    """Calls of a command that writes files, each below its own folder.

    Args:
        folder: contains the source (`sim`); the command writes to its folder `out`.
        command: the arguments; `IN` and `OUT` are replaced.
    """

    def __init__(self, server: ForkServer, folder: Path, command: Sequence[str]) -> None:
        self._server, self._folder = server, folder
        self._command = command
        self._good = self._run({})

    def _run(self, environ: dict[str, str]) -> tuple[int, str, dict[str, bytes], str]:
        """Return (exit code, what it says on stderr, the files, stdout)."""
        out = self._folder / "out"
        out.mkdir()
        names = {"IN": str(self._folder / "sim"), "OUT": str(out)}
        command = [
            re.sub(r"\b(IN|OUT)\b", lambda name: names[name[0]], one) for one in self._command
        ]
        done = self._server.run(command, self._folder, {**os.environ, **environ})
        files = {
            str(path.relative_to(out)): path.read_bytes()
            for path in out.rglob("*")
            if path.is_file() and not path.name.startswith(".")
        }
        shutil.rmtree(out)
        return done.returncode, done.stderr, files, done.stdout

    def calls(self) -> Counter[tuple[str, str]]:
        """How often each (call, part of the path) comes."""
        log = self._folder / "calls"
        self._run({"FAILING_CALLS_LOG": str(log), "FAILING_CALLS_BELOW": "/"})
        lines = [line.split(" ", 1) for line in log.read_text("utf-8").splitlines()]
        log.unlink()
        out = f"{self._folder}/out"
        found = Counter(
            (call, "out" + re.sub(r"[0-9a-f]{8}$", "*", path.removeprefix(out)))
            for call, path in lines
            if path.startswith(out)
        )
        found.update(
            (call, ".stdout")
            for call, path in lines
            if call == "write" and path.endswith(".stdout")
        )
        return found

    def fail(self, fault: Fault) -> str:
        """Let a call fail; what the command said. Each file that has its final name is whole, and
        so is all that a command without an error has written."""
        rule = f"{fault.call} {fault.share} {fault.number} {fault.error}"
        code, said, files, stdout = self._run({"FAILING_CALL": rule, "FAILING_CALLS_BELOW": "/"})
        good, _, whole, printed = self._good
        assert good == 0, self._good[1]
        if code == 0:
            assert files == whole
            assert stdout == printed
            return ""
        check_told(said)
        # A simulation is whole with the files of `final`, and not before.
        if self._command[0] == "simulate":
            files = {name: data for name, data in files.items() if name.endswith(".json")}
        cut = [name for name, data in files.items() if data != whole.get(name)]
        assert not cut, f"{cut} after {said}"
        return said


def check_told(said: str) -> None:
    """Check that what a command says on stderr is an error of the catalogue that is no defect."""
    assert re.search(r"^OLR-\d{5}: ", said, re.MULTILINE), said
    assert "  to do: " in said, said
    assert "OLR-09001" not in said, said
    assert "Traceback" not in said, said


OUTPUTS: Final = {
    "decode": ("decode", "IN/logs", "--dictionary", "IN/dictionary.json"),
    "parquet": (
        *("decode", "IN/logs", "--dictionary", "IN/dictionary.json"),
        *("--format", "parquet", "--out", "OUT/files"),
    ),
    "simulate": ("simulate", "--out", "OUT/sim", "--seed", "3", "--size", "200KB"),
}
"""Commands that write files."""


def _share(path: str, folder: Path) -> str:
    name = path.removeprefix(f"{folder}/").removesuffix(" (deleted)")
    if name.startswith(("sim/logs/", "mount/")):
        return name[: name.rindex("/") + 1]
    name = re.sub(r"/#\d+$", "/#", name)  # a file without a name
    name = re.sub(r"vault/[0-9_]+", "vault/*", name)
    name = re.sub(r"-[0-9a-f]{16}\b", "-*", name)  # a recovery image
    return re.sub(r"-[a-z0-9_]{8}$", "-", name)


def faults(calls: Counter[tuple[str, str]], most: int) -> Iterator[Fault]:
    """Each error of each call, for at most about `most` of the calls on the same file."""
    for (call, share), count in sorted(calls.items()):
        step = max(1, count // most)
        for error in ERRORS.get(call, ()):
            if error == GONE and share.endswith("/"):  # a log that is lost must be loaded again
                continue
            for number in range(1, count + 1, step):
                yield Fault(call, share, number, error)


def _write_outputs(chosen: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        library = compiled(folder)
        assert library is not None, "a C compiler is needed"
        made_source(folder)
        with failing_server(library) as server:
            outputs, wrong = Outputs(server, folder, OUTPUTS[chosen.scene]), 0
            for fault in faults(outputs.calls(), chosen.most):
                try:
                    said = outputs.fail(fault).strip().splitlines()
                    end = next((line for line in said if line.startswith("OLR-")), "went on")
                    print(fault, "|", end, flush=True)  # noqa: T201
                except AssertionError as error:
                    wrong += 1
                    print(fault, "| WRONG:", str(error)[-2000:], flush=True)  # noqa: T201
            print(f"{wrong} faults with a wrong end")  # noqa: T201


def main() -> None:
    """Go through all faults; print those after which something is wrong."""
    import psycopg

    from tests.postgres.own_cluster import own_cluster

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scene", choices=[*SCENES, *OUTPUTS], default="once")
    parser.add_argument("--only", default="", help="a regular expression: a part of the line")
    parser.add_argument("--most", type=int, default=8, help="most numbers of a call on a file")
    parser.add_argument("--calls", action="store_true", help="only list the calls")
    chosen = parser.parse_args()
    if chosen.scene in OUTPUTS:
        _write_outputs(chosen)
        return
    scene = SCENES[chosen.scene]
    with own_cluster("fsync = off") as cluster, tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        library = compiled(folder)
        assert library is not None, "a C compiler is needed"
        made = scene.make(folder)
        with failing_server(library) as server:

            def lives(number: int) -> Lives:
                place, databases = folder / f"life-{number}", []
                with psycopg.connect(cluster.connect_string, autocommit=True) as connection:
                    for target in range(scene.targets):
                        database = f"life_{number}_{target}"
                        connection.execute(f"CREATE DATABASE {database}".encode())
                        databases.append(f"{cluster.connect_string} dbname={database}")
                return Lives(server, made, place, databases, scene)

            with closing(lives(0)) as first:
                calls = first.calls()
            if chosen.calls:
                for call, count in sorted(calls.items()):
                    print(*call, count)  # noqa: T201
                return
            wanted = [one for one in faults(calls, chosen.most) if re.search(chosen.only, str(one))]
            wrong = 0
            for number, fault in enumerate(wanted, 1):
                try:
                    with closing(lives(number)) as one:
                        said = one.fail(fault).strip().splitlines()
                    end = next((line for line in said if line.startswith("OLR-")), "went on")
                    print(fault, "|", end, flush=True)  # noqa: T201
                    shutil.rmtree(folder / f"life-{number}")
                except AssertionError as error:
                    wrong += 1
                    print(fault, "| WRONG:", str(error)[-2000:], flush=True)  # noqa: T201
                with psycopg.connect(cluster.connect_string, autocommit=True) as connection:
                    for target in range(scene.targets):
                        database = f"life_{number}_{target}"
                        connection.execute(f"DROP DATABASE {database} WITH (FORCE)".encode())
            print(f"{len(wanted)} faults, {wrong} of them with a wrong end")  # noqa: T201


if __name__ == "__main__":
    main()
