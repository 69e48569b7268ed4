"""Runs and commands whose system calls fail, one call in each life.

In the first life, one call on a log, on a file of `context.data` or on a socket fails, reads or
writes only half, or finds the file deleted; or the system refuses memory, a thread or a process.
The second life goes on from what the first left. Run all of them, which takes an hour for each
scene, with ``python -m tests.appliance.failing_calls --scene NAME``; ``--only TEXT`` takes those
whose line matches a regular expression, ``--count N`` so many at random. A scene of `OUTPUTS` is a
command that writes files: with an error, none of them may look whole and be cut. A scene of `WORKS`
is a command of a migration, one of `WAYS` of the way back: an operator repeats it.
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
from fnmatch import fnmatch
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.simulator.database_shape import choose_shape, demo_shape
from olr_pg.simulator.sessions.row_shape import RowShape
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.appliance.test_kills_between_writes import write_config
from tests.cli.fork_server import ForkServer, fork_server
from tests.fallback.killed_steps import COMMANDS, Commands, Reached, Strike, Ways
from tests.oracle.live_source import LiveSource
from tests.replicator.test_simulated import check_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from olr_pg.postgres.embedded import EmbeddedPostgres
    from olr_pg.simulator.simulated_files import Summary
    from tests.proving.served import Served

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
    "malloc": (errno.ENOMEM,),
    "thread": (errno.EAGAIN,),
    "fork": (errno.EAGAIN, errno.ENOMEM),
    "exec": (errno.ENOMEM, errno.EACCES),
    "socket": (errno.EMFILE, errno.ENOBUFS),
    "connect": (errno.ECONNREFUSED, errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.EINTR),
    "send": (errno.ECONNRESET, errno.EPIPE, errno.ENOBUFS, errno.EINTR, HALF),
    "recv": (errno.ECONNRESET, errno.ETIMEDOUT, errno.EINTR, HALF),
    "poll": (errno.EINTR, errno.ENOMEM),
    "epoll": (errno.EINTR,),
    "accept": (errno.EMFILE, errno.ECONNABORTED, errno.ENOBUFS),
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
            self._sockets = _socket_names(databases[0])
        else:
            self._live.archive_all()
            self._sockets = _socket_names(databases[0], self._live.server.connect_string)
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
        return _calls_of(self.live, self._folder, self._sockets)

    def fail(self, fault: Fault) -> str:
        """Let a call fail in the first life; what that life said, empty if it did not notice. The
        second life must complete the target."""
        said = self.live(FAILING_CALL=_rule(fault, self._sockets))
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


class Work(NamedTuple):
    """A command of a migration whose calls fail, and the commands around it. A command is its
    arguments; ``archive N`` lets the source archive so many logs more, ``sql TEXT`` is carried out
    in the target, ``without NAME`` configures the other tables, ``fails`` is in front of a
    command that must fail, and ``struck FAULT`` in front of one whose call fails.

    Attributes:
        before: commands before it.
        again: what an operator runs after its failure; empty for the command itself.
        after: commands after it.
        done: its exit code when it does its work.
        output: a file that the command writes; it is there if the command does its work.
    """

    command: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    again: tuple[str, ...] = ()
    after: tuple[tuple[str, ...], ...] = ()
    done: int = 0
    output: str = ""


_LOADED: Final = (("archive", "2"), ("initial-load",), ("archive", "99"), ("run", "--once"))
_DAMAGED: Final = (
    *_LOADED,
    ("sql", "UPDATE shop.customers SET name = name || 'x' WHERE customer_id < 4"),
    ("sql", "DELETE FROM shop.order_lines WHERE order_id < 3"),
)
_STOPPED: Final = (
    *(("archive", "2"), ("initial-load",), ("archive", "99")),
    ("sql", "ALTER TABLE shop.orders ADD CONSTRAINT no CHECK (false) NOT VALID"),
    ("fails", "run", "--once"),
    ("sql", "ALTER TABLE shop.orders DROP CONSTRAINT no"),
)
_DIFFERENCES: Final = ("verify", "--differences", "OUT/differences")
_REPAIR: Final = ("repair", "--yes", "--differences", "OUT/differences")
_CUTOVER: Final = ("cutover", "--accept", "*")

WORKS: Final = {
    "load": Work(
        ("initial-load",),
        (("archive", "2"),),
        ("initial-load", "--resume"),
        (("archive", "99"), ("run", "--once")),
    ),
    "resume": Work(
        ("initial-load", "--resume"),
        (("archive", "2"), ("struck", "send oracle 200 104", "initial-load")),
        (),
        (("archive", "99"), ("run", "--once")),
    ),
    "add": Work(
        ("tables", "add", "SHOP.ORDERS"),
        (("without", "SHOP.ORDERS"), *_LOADED),
        (),
        (("run", "--once"),),
    ),
    "verify": Work(_DIFFERENCES, _DAMAGED, (), (_REPAIR,), 1, "differences"),
    "repair": Work(_REPAIR, (*_DAMAGED, ("fails", *_DIFFERENCES)), (), (("verify",),)),
    "retry": Work(("errors", "retry"), _STOPPED, (), (("run", "--once"), ("verify",))),
    "migrate": Work(
        ("migrate", "--once"),
        (("archive", "2"),),
        (),
        (("archive", "99"), ("run", "--once")),
    ),
    "cutover": Work(_CUTOVER, _LOADED, (), ()),
    "schema": Work(("schema", "export", "--out", "OUT/schema"), _LOADED),
}
"""Commands on a live source."""


def shop_source(folder: Path) -> Summary:
    """A shop that has rows before its logs begin."""
    shape = replace(demo_shape(), pace=Pace(log_blocks=40))
    return simulate(5, folder / "sim", workload="orders", size=150_000, shape=shape, prefilled=True)


class Works:
    """Lives of a command. What is before it is done once.

    Args:
        folder: gets the source (`sim`), and the run's files.
        database: a connection string of the target; another database `NAME_before` is made.
    """

    def __init__(
        self, server: ForkServer, made: Summary, folder: Path, database: str, work: Work
    ) -> None:
        self._server, self._made, self._database, self._work = server, made, database, work
        self._folder = folder
        folder.mkdir()
        (folder / "out").mkdir()
        self._live = LiveSource(made, folder)
        self._live.keep_rows()
        self._config = self._live.write_config(folder, database)
        self._sockets = _socket_names(database, self._live.server.connect_string)
        for step in work.before:
            self._do(step)
        self._document = self._config.read_bytes()
        for part in ("data", "out"):
            if (folder / part).exists():
                shutil.copytree(folder / part, folder / f"{part}-before")
        self._admin("CREATE DATABASE {0}_before TEMPLATE {0} STRATEGY file_copy")

    def close(self) -> None:
        """End the live source, and drop the database."""
        self._live.close()
        self._admin("DROP DATABASE IF EXISTS {0}_before")

    def _admin(self, *statements: str) -> None:
        name = str(conninfo_to_dict(self._database)["dbname"])
        other = make_conninfo(self._database, dbname="postgres")
        with psycopg.connect(other, autocommit=True) as connection:
            for one in statements:
                connection.execute(one.format(name).encode())

    def _restore(self) -> None:
        """Begin a life with what was before the command."""
        self._config.write_bytes(self._document)
        for part in ("data", "out"):
            shutil.rmtree(self._folder / part, ignore_errors=True)
            if (self._folder / f"{part}-before").exists():
                shutil.copytree(self._folder / f"{part}-before", self._folder / part)
        self._admin(
            "DROP DATABASE {0} WITH (FORCE)",
            "CREATE DATABASE {0} TEMPLATE {0}_before STRATEGY file_copy",
        )

    def _do(self, step: Sequence[str]) -> None:
        """Do a step, which must do its work."""
        if step[0] == "archive":
            for _ in range(min(int(step[1]), len(self._live.waiting))):
                self._live.archive()
        elif step[0] == "without":
            names = [one.full_name for one in self._made.tables if one.full_name != step[1]]
            self._config = self._live.write_config(self._folder, self._database, tables=names)
        elif step[0] == "sql":
            with psycopg.connect(self._database, autocommit=True) as connection:
                connection.execute(step[1].encode())
        elif step[0] == "struck":
            call, share, number, error = step[1].split()
            fault = Fault(call, share, int(number), int(error))
            below = f"{self._folder}/"
            rule = _rule(fault, self._sockets)
            done = self._run(step[2:], FAILING_CALL=rule, FAILING_CALLS_BELOW=below)
            assert done.returncode > 0, done.stdout
        else:
            fails = step[0] == "fails"
            done = self._run(step[fails:])
            assert bool(done.returncode) == fails, (step, done.stdout, done.stderr)

    def _run(self, command: Sequence[str], **environ: str) -> subprocess.CompletedProcess[str]:
        words = [word.replace("OUT", str(self._folder / "out")) for word in command]
        return self._server.run(
            [*words, "--config", str(self._config)], self._folder, {**os.environ, **environ}
        )

    def _life(self, **environ: str) -> str:
        """Carry the command out, and what is needed after it; what it said if it failed."""
        self._restore()
        work = self._work
        done = self._run(work.command, **environ)
        output = self._folder / "out" / work.output
        said = ""
        if done.returncode != work.done or re.search(r"^OLR-", done.stderr, re.MULTILINE):
            said = done.stderr
            assert done.returncode > 0, (done.returncode, done.stdout, said)
            check_told(said)
            assert not work.output or not output.exists(), said
            again = self._run(work.again or work.command)
            assert again.returncode == work.done, (said, again.stdout, again.stderr)
        for step in work.after:
            self._do(step)
        check_tables(self._made, self._database)
        return said

    def calls(self) -> Counter[tuple[str, str]]:
        """How often each (call, name of a file or of a socket) comes in the command."""
        log = self._folder.parent / "calls"
        below = f"{self._folder}/"
        assert self._life(FAILING_CALLS_LOG=str(log), FAILING_CALLS_BELOW=below) == ""
        lines = [line.split(" ", 1) for line in log.read_text("utf-8").splitlines()]
        log.unlink()
        return Counter((call, _share(path, self._folder, self._sockets)) for call, path in lines)

    def fail(self, fault: Fault) -> str:
        """Let a call fail; what the command said, empty if it did its work. After what an operator
        does then, the target is complete."""
        below = f"{self._folder}/"
        return self._life(FAILING_CALL=_rule(fault, self._sockets), FAILING_CALLS_BELOW=below)


class WayCommands(Commands):
    """Carries out the commands of a way back; a struck one is one whose call fails.

    Attributes:
        rule: environment variables that let it fail, or list its calls.
        said: what the struck command said, if it failed.
    """

    def __init__(self, server: ForkServer, config: Path) -> None:
        self._server, self._config = server, config
        self.rule: dict[str, str] = {}
        self.said = ""

    def close(self) -> None:
        """Do nothing: the server belongs to somebody else."""

    def carry_out(self, command: str, strike: Strike | None = None) -> Reached:
        """See `Commands.carry_out`."""
        words = ["fallback", *command.split(), *WAY_OPTIONS.get(command, ())]
        words += ["--config", str(self._config)]
        environ = os.environ if strike is None else {**os.environ, **self.rule}
        done = self._server.run(words, self._config.parent, environ)
        if done.returncode == 0:
            return Reached(is_struck=False, failure="", step="")
        check_told(done.stderr)
        if strike is not None:
            self.said = done.stderr
        return Reached(is_struck=True, failure=f"OLR- {done.stderr}", step="")


WAY_OPTIONS: Final = {"run": ("--once",), "cutover": ("--unverified",)}


WAYS: Final = {f"fallback-{command}": command for command in COMMANDS}
"""Commands of the way back to Oracle."""


class WaysBack:
    """Ways back, one after the other, with a call of one command that fails; see `Ways`."""

    def __init__(
        self,
        server: ForkServer,
        folder: Path,
        cluster: EmbeddedPostgres,
        served: Served,
        command: str,
    ) -> None:
        self._folder, self._command = folder, command
        self._ways = ways = Ways(folder, cluster, served)
        ways.commands.close()
        self._commands = ways.commands = WayCommands(server, folder / "olr-pg.json")
        self._sockets = _socket_names(cluster.connect_string, served.dsn)

    def _life(self, **environ: str) -> str:
        self._commands.rule = {"FAILING_CALLS_BELOW": f"{self._folder}/", **environ}
        self._commands.said = ""
        _, wrong = self._ways.judge({self._command: Strike(0, "appliance", 1)})
        assert not wrong, wrong
        return self._commands.said

    def calls(self) -> Counter[tuple[str, str]]:
        """How often each (call, name of a file or of a socket) comes in the command."""
        return _calls_of(self._life, self._folder, self._sockets)

    def fail(self, fault: Fault) -> str:
        """Let a call fail; what the command said, empty if it did its work. After the same command
        again and those after it, both sides are as if nothing had happened."""
        return self._life(FAILING_CALL=_rule(fault, self._sockets))


@contextmanager
def ways_back(command: str) -> Iterator[WaysBack]:
    """Make both sides."""
    from tests.fallback.kills import logical_postgres
    from tests.proving.served import served_source

    with tempfile.TemporaryDirectory() as name, logical_postgres() as cluster:
        folder = Path(name).resolve()
        library = compiled(folder)
        assert library is not None, "a C compiler is needed"
        (folder / "life").mkdir()
        with served_source(folder / "source") as served, failing_server(library) as server:
            yield WaysBack(server, folder / "life", cluster, served, command)


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


def _calls_of(
    live: Callable[..., str], folder: Path, sockets: Mapping[str, str]
) -> Counter[tuple[str, str]]:
    """Count each (call, name as of `_share`) of a life that ends well.

    Args:
        live: lives with further variables of the environment; returns what the life said.
    """
    log = folder.parent / "calls"
    assert live(FAILING_CALLS_LOG=str(log)) == ""
    lines = [line.split(" ", 1) for line in log.read_text("utf-8").splitlines()]
    log.unlink()
    return Counter((call, _share(path, folder, sockets)) for call, path in lines)


def _share(path: str, folder: Path, sockets: Mapping[str, str]) -> str:
    """The part of a path that is the same in each life.

    Args:
        sockets: see `_socket_names`.
    """
    name = path.removeprefix(f"{folder}/").removesuffix(" (deleted)")
    for server, pattern in sockets.items():
        if fnmatch(name, f"system/{pattern}"):
            return server
    if name.startswith("system/socket/"):
        return "system/socket/*"
    if name.startswith(("sim/logs/", "mount/")):
        return name[: name.rindex("/") + 1]
    name = re.sub(r"/#\d+$", "/#", name)  # a file without a name
    name = re.sub(r"vault/[0-9_]+", "vault/*", name)
    name = re.sub(r"-[0-9a-f]{16}\b", "-*", name)  # a recovery image
    name = re.sub(r"\.[0-9a-f]{8}$", ".*", name)  # a file before it gets its name
    return re.sub(r"-[a-z0-9_]{8}$", "-", name)


def _socket_names(target: str, oracle: str = "") -> dict[str, str]:
    """The pattern of each server's sockets, by its name."""
    found = {"postgres": f"socket/*/*{conninfo_to_dict(target)['port']}"}
    port = re.search(r":(\d+)", oracle)
    return found if port is None else {**found, "oracle": f"socket/*/{port[1]}"}


def _rule(fault: Fault, sockets: Mapping[str, str]) -> str:
    """The fault for the library."""
    share = sockets.get(fault.share, fault.share)
    return f"{fault.call} {share} {fault.number} {fault.error}"


def faults(calls: Counter[tuple[str, str]], most: int) -> Iterator[Fault]:
    """Each error of each call, for at most about `most` of the calls on the same file."""
    for (call, share), count in sorted(calls.items()):
        step = max(1, count // most)
        for error in ERRORS.get(call, ()):
            # A log, a configuration or an input that is lost must be restored.
            if error == GONE and share.endswith(("/", "config.json", "olr-pg.json", "differences")):
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


def _print_calls(calls: Counter[tuple[str, str]]) -> None:
    for call, count in sorted(calls.items()):
        print(*call, count)  # noqa: T201


def _wanted(calls: Counter[tuple[str, str]], chosen: argparse.Namespace) -> list[Fault]:
    found = [one for one in faults(calls, chosen.most) if re.search(chosen.only, str(one))]
    return found if chosen.count is None else Random(1).sample(found, min(chosen.count, len(found)))


def _campaign(faults: Iterable[Fault], fail: Callable[[Fault], str]) -> None:
    """Print the end of each fault, and what is wrong."""
    wrong = 0
    for fault in faults:
        try:
            said = fail(fault).strip().splitlines()
            end = next((line for line in said if line.startswith("OLR-")), "went on")
            print(fault, "|", end, flush=True)  # noqa: T201
        except AssertionError as error:
            wrong += 1
            print(fault, "| WRONG:", str(error)[-2000:], flush=True)  # noqa: T201
    print(f"{wrong} faults with a wrong end")  # noqa: T201


def _do_works(chosen: argparse.Namespace) -> None:
    from tests.postgres.own_cluster import own_cluster

    with own_cluster("fsync = off") as cluster, tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        library = compiled(folder)
        assert library is not None, "a C compiler is needed"
        made = shop_source(folder)
        with psycopg.connect(cluster.connect_string, autocommit=True) as connection:
            connection.execute("CREATE DATABASE work")
        database = f"{cluster.connect_string} dbname=work"
        with (
            failing_server(library) as server,
            closing(Works(server, made, folder / "life", database, WORKS[chosen.scene])) as works,
        ):
            calls = works.calls()
            if chosen.calls:
                _print_calls(calls)
                return
            _campaign(_wanted(calls, chosen), works.fail)


def main() -> None:
    """Go through all faults; print those after which something is wrong."""
    from tests.postgres.own_cluster import own_cluster

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scene", choices=[*SCENES, *OUTPUTS, *WORKS, *WAYS], default="once")
    parser.add_argument("--only", default="", help="a regular expression: a part of the line")
    parser.add_argument("--most", type=int, default=8, help="most numbers of a call on a file")
    parser.add_argument("--count", type=int, help="so many of them at random")
    parser.add_argument("--calls", action="store_true", help="only list the calls")
    chosen = parser.parse_args()
    if chosen.scene in OUTPUTS:
        _write_outputs(chosen)
        return
    if chosen.scene in WAYS:
        with ways_back(WAYS[chosen.scene]) as ways:
            calls = ways.calls()
            if chosen.calls:
                _print_calls(calls)
            else:
                _campaign(_wanted(calls, chosen), ways.fail)
        return
    if chosen.scene in WORKS:
        _do_works(chosen)
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
                _print_calls(calls)
                return
            wanted = _wanted(calls, chosen)
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
