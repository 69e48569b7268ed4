"""Starts the process's only Spark session on first use, and stops it.

By default, Spark runs in local mode. All sockets of a local session listen only on the loopback
address. In every mode, so does Spark's web page, unless the environment variable `ADDRESS_VARIABLE`
sets another address for it. Java's output is written to a file in the session's scratch directory,
and is part of the error if Spark does not start. The JVM ends when this process ends, even if it is
killed: the JVM reads from a pipe whose other end only this process has.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from olr_pg.errors import Code, OlrPgError, plain_reason, system_reason
from olr_pg.files.sealed import NO_PLAIN_FILES
from olr_pg.java.runtime import Java, archive_options, find_java
from olr_pg.observability.logging_setup import get_logger
from olr_pg.spark.daemon import PRELOAD_VARIABLE

if TYPE_CHECKING:
    from typing import IO

    from py4j.java_gateway import JavaGateway
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from olr_pg.config.model import Config

ADDRESS_VARIABLE: Final = "SPARK_LOCAL_IP"
"""An environment variable of Spark: the address on which its web page listens, if the page is
enabled.
"""

RESULTS_PROPERTY: Final = "spark.olr_pg.results"
"""The Spark property with a directory that the driver and all executors share."""

_LOOPBACK: Final = "127.0.0.1"
_UNREACHED_ADDRESS: Final = ("192.0.2.1", 9)
"""An address that is reserved for documentation (RFC 5737); nothing is sent to it."""

_STOP_SECONDS_MAX: Final = 15.0
_JAVA_OUTPUT_MAX: Final = 2_000

_JAVA_OPTIONS: Final = (
    # Here Spark only distributes tasks. So these options select the quick compiler and the small
    # garbage collector: both start faster and need less memory than the defaults, which are made
    # for long computations in the JVM.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
)

_LOG_SETTINGS: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX} %p %c{1}: %m%n%ex
"""

_JVM_NAMES: Final = ("PythonRDD", "PythonUtils", "SimplePythonFunction", "SparkConf")
"""Names of Java classes that PySpark looks up for every job."""

_SOCKET_NAME_BYTES: Final = 48
"""Maximum bytes of the name that Spark appends to the path of its sockets' directory, with some
reserve.
"""

_SOCKET_PATH_BYTES: Final = 108
"""Maximum length of a socket's path, including its terminator (Linux, unix(7))."""

_PRELOADED: Final = ("pyarrow", "pyspark.worker")


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """The settings with which a session is started.

    Attributes:
        master: the Spark master URL (`spark.master` of the configuration).
        conf: Spark properties (`spark.conf`); they override this module's defaults.
        preload: modules and ``module:function`` entries with which the workers warm up, see
            `olr_pg.spark.daemon`.
        results: a directory that the driver and all executors share (`spark.results`). If `results`
            is None, a session whose tasks all run on this host uses its own directory; other
            sessions use none.
        encrypted: whether Spark encrypts its own files, and workers write no rows to other files.
        java_options: Java options in addition to this module's defaults; if there are any, the
            session does not use the archive of classes.
    """

    master: str = "local[*,3]"
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    preload: tuple[str, ...] = ()
    results: str | None = None
    java_options: tuple[str, ...] = ()
    encrypted: bool = False

    @property
    def local(self) -> bool:
        """Whether every task runs on this host."""
        return self.master.startswith("local")


@dataclass(frozen=True, slots=True)
class _Running:
    settings: SparkSettings
    spark: SparkSession
    process: subprocess.Popen[bytes] | None
    scratch: contextlib.ExitStack

    @property
    def dead(self) -> bool:
        """Whether the JVM is dead. The JVM itself is asked, because a killed JVM stops answering
        before its process has ended.
        """
        from py4j.protocol import Py4JError

        with contextlib.suppress(Py4JError, OSError, AttributeError):
            return not self.spark.sparkContext.startTime
        return self.process is not None


_lock = threading.Lock()
_running: _Running | None = None


def get_session(settings: SparkSettings) -> SparkSession:
    """Return the session; start it if none runs, or if its JVM has died. A start takes seconds.

    Raises:
        OlrPgError: 6001 and 6002 no usable Java, 6003 Spark does not start, 6007 a session with
            other settings runs.
    """
    global _running
    with _lock:
        if _running is not None and _running.dead:
            _stop(_running)
            _running = None
        if _running is None:
            _running = _start(settings)
        elif _running.settings != settings:
            raise OlrPgError(Code.ANOTHER_SPARK_SESSION, f"it runs on {_running.settings.master}")
        return _running.spark


def stop_session(seconds_max: float = _STOP_SECONDS_MAX) -> bool:
    """Stop the session and its JVM, and delete its files; do nothing if no session runs.

    Args:
        seconds_max: time limit for the JVM to end before it is killed.

    Returns:
        Whether the JVM ended by itself, without being killed; True if no session ran.
    """
    global _running
    with _lock:
        running, _running = _running, None
        return running is None or _stop(running, seconds_max)


def spark_home() -> Path:
    """Return the directory in which the package pyspark has installed Spark."""
    import pyspark

    return Path(pyspark.__file__).parent


def default_properties(
    settings: SparkSettings, scratch: Path, archived: Sequence[str] = ()
) -> dict[str, str]:
    """Return the default Spark properties of a session. The user's properties override these
    defaults.

    Args:
        settings: the session's settings.
        scratch: a directory of this session for Java's settings and for Spark's files.
        archived: the Java options that use the archive of classes; empty if there is none.
    """
    java_options = [*_JAVA_OPTIONS, f"-Dlog4j2.configurationFile={(scratch / _LOG_FILE).as_uri()}"]
    java_options += settings.java_options or archived
    if not _is_named():
        java_options.append("-Duser.home=/nonexistent")  # Java would look for "?/.ivy2"
    properties = {
        "spark.app.name": "olr_pg",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": " ".join(java_options),
        # Little memory is enough if large results do not pass through the JVM (see `jobs`).
        "spark.driver.memory": "512m" if settings.local and not settings.encrypted else "2g",
        "spark.driver.maxResultSize": "0",
        "spark.python.daemon.module": "olr_pg.spark.daemon",
        "spark.python.worker.reuse": "true",
        "spark.python.worker.faulthandler.enabled": "true",
        # Spark starts `python -m`, which would import modules from the working directory first. If
        # others can write there, they could execute code as this user.
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        f"spark.executorEnv.{PRELOAD_VARIABLE}": ",".join((*_PRELOADED, *settings.preload)),
    }
    if settings.local:
        properties |= {
            "spark.driver.bindAddress": _LOOPBACK,
            "spark.driver.host": _LOOPBACK,
            "spark.local.dir": str(scratch),
            # Files that a killed Python worker leaves in its temporary directory are deleted with
            # the session's directory.
            "spark.executorEnv.TMPDIR": str(scratch),
        }
        # Any user of this machine can connect to the loopback address, and Java deserializes the
        # messages that arrive at Spark's ports. For these masters, Spark makes a secret of its own
        # (org.apache.spark.SecurityManager.initializeAuth); for others, it requires a given one.
        if not settings.master.startswith("local-cluster"):
            properties["spark.authenticate"] = "true"
        if not settings.encrypted:
            properties[RESULTS_PROPERTY] = str(scratch)
        # Connect Java and Python by Unix sockets: over TCP, each job would wait 40 ms for a delayed
        # acknowledgement.
        if len(os.fsencode(scratch)) + _SOCKET_NAME_BYTES < _SOCKET_PATH_BYTES:
            properties |= {
                "spark.python.unix.domain.socket.enabled": "true",
                "spark.python.unix.domain.socket.dir": str(scratch),
            }
    if settings.encrypted:
        properties["spark.io.encryption.enabled"] = "true"
        properties[f"spark.executorEnv.{NO_PLAIN_FILES}"] = "1"
    return properties


def _shows_page(properties: Mapping[str, str]) -> bool:
    return properties.get("spark.ui.enabled", "true").strip().lower() == "true"


def _page_address(properties: Mapping[str, str]) -> str:
    """Return the address on which the web page listens. The addresses of other sockets are in Spark
    properties.
    """
    return os.environ.get(ADDRESS_VARIABLE, _LOOPBACK) if _shows_page(properties) else _LOOPBACK


def _driver_address(master: str) -> dict[str, str]:
    """Return Spark properties with an address at which a cluster can reach the driver, although the
    web page listens only on loopback.
    """
    named = _MASTER_ADDRESS.match(master)
    target = (named[1].strip("[]"), int(named[2])) if named else _UNREACHED_ADDRESS
    family = socket.AF_INET6 if ":" in target[0] else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(target)  # sends nothing, because it is a datagram socket
            address = str(probe.getsockname()[0])
        except OSError:
            return {}
    return {"spark.driver.host": address, "spark.driver.bindAddress": address}


_MASTER_ADDRESS: Final = re.compile(r"spark://([^,/]+):(\d+)")
_LOG_FILE: Final = "log4j2.properties"
_JAVA_OUTPUT_FILE: Final = "java.log"
_PROPERTIES_FILE: Final = "spark.properties"


def _start(settings: SparkSettings) -> _Running:
    java = find_java()
    with contextlib.ExitStack() as stack:
        scratch = _new_scratch(None, stack)
        (scratch / _LOG_FILE).write_text(_LOG_SETTINGS)
        archived = archive_options(java, spark_home())
        properties = default_properties(settings, scratch, archived)
        if settings.results is not None and not settings.encrypted:
            properties[RESULTS_PROPERTY] = str(_new_scratch(Path(settings.results), stack))
        properties |= settings.conf
        is_placed = settings.local or "spark.driver.host" in properties
        if _shows_page(properties) and not is_placed:
            properties = _driver_address(settings.master) | properties
        spark, process = _launch(settings, properties, java, scratch)
        files = stack.pop_all()
    atexit.register(stop_session)
    get_logger("spark").info(
        "Spark session started",
        spark=spark.sparkContext.version,
        master=settings.master,
        java=java.version,
        java_bundled=java.bundled,
    )
    return _Running(settings, spark, process, files)


def _new_scratch(parent: Path | None, stack: contextlib.ExitStack) -> Path:
    try:
        scratch = new_scratch(parent)
    except OSError as error:
        detail = f"no scratch directory: {system_reason(error)}"
        where = {} if parent is None else {"directory": str(parent)}
        raise OlrPgError(Code.SPARK_START_FAILED, detail, **where) from error
    stack.callback(scratch.remove)
    return scratch.path


def _launch(
    settings: SparkSettings, properties: Mapping[str, str], java: Java, scratch: Path
) -> tuple[SparkSession, subprocess.Popen[bytes] | None]:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    from olr_pg.spark.late_sql import LateSqlSession

    conf = SparkConf(loadDefaults=False).setMaster(settings.master)
    conf.setAll(list(properties.items()))
    words = scratch / _JAVA_OUTPUT_FILE
    environment = _launch_environment(settings, properties, java, scratch)
    with words.open("wb") as log, environment, _keeping_interrupt_handler():
        gateway = None
        try:
            # Start the JVM in a separate session of the operating system. Otherwise a signal to
            # this process's group, from a terminal or a supervisor, would end the JVM while we
            # still need it to end running work.
            streams = {"stdout": log, "stderr": log, "start_new_session": True}
            gateway = launch_gateway(None, streams)  # type: ignore[no-untyped-call]
            _name_user(gateway)
            context = SparkContext(conf=conf, gateway=gateway)
            # A site may set this in spark-defaults.conf. Then Spark returns it as the number of
            # cores, and jobs would be far too large.
            context._jsc.sc().conf().remove("spark.default.parallelism")
            _cache_jvm_names(context)
            return LateSqlSession(context), gateway.proc
        except BaseException as error:
            reason = _java_exception(error)  # Java answers no more after the next line
            if gateway is not None:
                _close_gateway(gateway, gateway.proc)
            if isinstance(error, PySparkException | Py4JError | OSError):
                printed = words.read_text(errors="replace").strip()[-_JAVA_OUTPUT_MAX:]
                said = "\n".join(part for part in (reason, printed) if part)
                raise OlrPgError(
                    Code.SPARK_START_FAILED, said or plain_reason(error), master=settings.master
                ) from error
            raise


def _java_exception(error: BaseException) -> str:
    """Return Java's own words for an exception; empty if Java raised none, or no longer answers."""
    from py4j.protocol import Py4JError, Py4JJavaError

    if not isinstance(error, Py4JJavaError):
        return ""
    with contextlib.suppress(Py4JError, OSError):
        return str(error.java_exception.toString())
    return ""


def _is_named() -> bool:
    """Return whether the user id of this process has a name."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return True


def _name_user(gateway: JavaGateway) -> None:
    """Give the JVM the name of a user, if the user id of this process has no name.

    A container can run with any user id, and OpenShift chooses one. Hadoop, which Spark uses to
    find files, fails for a user without a name.
    """
    if not _is_named():
        users = gateway.jvm.org.apache.hadoop.security.UserGroupInformation
        users.setLoginUser(users.createRemoteUser(f"uid-{os.geteuid()}"))


def _cache_jvm_names(context: SparkContext) -> None:
    """Cache the class names that PySpark would otherwise look up in the JVM for every job.

    For each lookup, the JVM searches about 250 jar files for the class.
    """
    names = context._jvm
    for name in _JVM_NAMES:
        setattr(names, name, getattr(names, name))


@contextlib.contextmanager
def _launch_environment(
    settings: SparkSettings, properties: Mapping[str, str], java: Java, scratch: Path
) -> Iterator[None]:
    """Set the environment variables that Spark reads at its start, and restore them afterwards."""
    changes = {
        "JAVA_HOME": str(java.home),
        # Another Spark on this host may have a version that does not fit this Python package.
        "SPARK_HOME": str(spark_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "PYSPARK_SUBMIT_ARGS": _submit_arguments(properties, scratch),
    }
    if settings.local or _shows_page(properties):
        # Spark's page listens on this address; without the variable, it would listen on all
        # addresses.
        changes[ADDRESS_VARIABLE] = _page_address(properties)
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        with warnings.catch_warnings():
            # Python 3.12 and later warn of this fork. It is safe: the child only ignores a signal
            # before it executes Java.
            warnings.filterwarnings(
                "ignore", "This process .* is multi-threaded", DeprecationWarning
            )
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _submit_arguments(properties: Mapping[str, str], scratch: Path) -> str:
    """Return the arguments of spark-submit. The arguments name a file that contains `properties`,
    because properties can contain secrets.

    Every user of the host can see a command line. Other users cannot read the file or the scratch
    directory.
    """
    with (file := scratch / _PROPERTIES_FILE).open("w", encoding="utf-8") as lines:
        for key, value in properties.items():
            escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
            lines.write(f"{key}={escaped}\n")
    user_arguments = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    return f"--properties-file {shlex.quote(str(file))} --load-spark-defaults {user_arguments}"


@contextlib.contextmanager
def _keeping_interrupt_handler() -> Iterator[None]:
    """Restore this process's handler of Ctrl-C at the end of the context, because a SparkContext
    installs its own handler.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(running: _Running, seconds_max: float = _STOP_SECONDS_MAX) -> bool:
    from py4j.protocol import Py4JError

    context = running.spark.sparkContext
    gateway, updates = context._gateway, _end_updates(context)
    try:
        # If the JVM has already ended (killed, out of memory), stop() fails, and nothing is left to
        # stop.
        with contextlib.suppress(Py4JError, OSError), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark", RuntimeWarning)
            running.spark.stop()
        # stop() may have failed early; this second call makes pyspark forget the context.
        context.stop()
    finally:
        by_itself = _close_gateway(gateway, running.process, seconds_max)
        updates.join()
        running.scratch.close()
        atexit.unregister(stop_session)
    return by_itself


def _end_updates(context: SparkContext) -> threading.Thread:
    """Start a thread that stops PySpark's server for accumulator updates, and return it. This
    project does not use accumulator updates. Java can end while the thread runs.

    The server notices a shutdown within a second, or at once when Java has ended.
    """
    server = context._accumulatorServer
    context._accumulatorServer = None  # type: ignore[assignment]
    if server is not None:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # the connection's end
    ending = threading.Thread(target=server.shutdown if server else None, daemon=True)
    ending.start()
    return ending


def _close_gateway(
    gateway: Any,
    process: subprocess.Popen[bytes] | None,
    seconds_max: float = _STOP_SECONDS_MAX,
) -> bool:
    """Close the connection to the JVM and wait for its end; return whether it ended normally."""
    from pyspark import SparkContext

    gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    if process is None:  # started by spark-submit, not by us
        return True
    if process.stdin is not None:
        process.stdin.close()
    try:
        return process.wait(seconds_max) >= 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False


_SCRATCH_PREFIX: Final = "olr-pg-spark-"
_LOCK_FILE: Final = "lock"


@dataclass(frozen=True, slots=True)
class Scratch:
    """The scratch directory of a session; its lock file is locked until the process ends."""

    path: Path
    _lock: IO[bytes]

    def remove(self) -> None:
        """Delete the directory and its contents; ignore errors."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def new_scratch(parent: Path | None = None) -> Scratch:
    """Create a scratch directory for this process; delete the scratch directories of killed
    processes.

    Args:
        parent: the parent directory; None for the system's directory of temporary files.

    Raises:
        OSError: the disk is full, or permission is denied.
    """
    parent = parent or Path(tempfile.gettempdir())
    _remove_abandoned(parent)
    path = Path(tempfile.mkdtemp(prefix=_SCRATCH_PREFIX, dir=parent))
    try:
        lock = (path / _LOCK_FILE).open("xb")
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
        raise
    fcntl.flock(lock, fcntl.LOCK_EX)
    return Scratch(path, lock)


def _remove_abandoned(parent: Path) -> None:
    for path in parent.glob(f"{_SCRATCH_PREFIX}*"):
        # Ignore directories of other users, directories without a lock file yet, and directories
        # that another process is just removing.
        with contextlib.suppress(OSError):
            if path.lstat().st_uid == os.geteuid() and _is_abandoned(path):
                shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(path: Path) -> bool:
    with (path / _LOCK_FILE).open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # If only the lock file exists, the owner may have just created it and not locked it yet:
        # then the directory is not abandoned.
        return any(entry.name != _LOCK_FILE for entry in path.iterdir())


def spark_settings(config: Config, preload: tuple[str, ...]) -> SparkSettings:
    """Return the settings of a session.

    Args:
        preload: the modules, or functions as ``module:function``, with which the workers warm up.
    """
    spark = config.spark
    return SparkSettings(
        spark.master,
        dict(spark.conf),
        preload,
        None if spark.results is None else str(spark.results),
        encrypted=config.context.is_encrypted,
    )
