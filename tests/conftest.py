"""Fixtures that every test folder may use."""

from __future__ import annotations

import gc
import itertools
import os
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import psycopg
import pytest
import structlog
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.compiling_ahead import CompilingAhead
from tests.postgres.own_cluster import cluster_folder as folder_for_cluster
from tests.postgres.own_cluster import own_cluster
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from olr_pg.postgres.embedded import EmbeddedPostgres
    from olr_pg.spark.session import SparkSettings
    from tests.spark.standalone_cluster import StandaloneCluster

# The first call of a kernel compiles it, which no deadline forgives. Every run draws examples of
# its own: fewer in each, and many with ``--hypothesis-profile=thorough``.
hypothesis.settings.register_profile("olr_pg", deadline=None, max_examples=50)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=1000)
hypothesis.settings.load_profile("olr_pg")

WORKERS_MAX = 7


def pytest_xdist_auto_num_workers() -> int:
    """Five more than there are cores, since tests wait for more than half of their time: with three
    more, up to a sixth of two cores stayed idle. One where others keep the cores busy."""
    cores = os.cpu_count() or 1
    return 1 if os.getloadavg()[0] > 2 * cores else min(cores + 5, WORKERS_MAX)


COMPILING = pytest.StashKey[CompilingAhead]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin to compile what a whole run needs; its processes collect the tests meanwhile."""
    config = session.config
    is_controller = config.getoption("numprocesses", 0) and not hasattr(config, "workerinput")
    wants_all = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if is_controller and not config.getoption("markexpr") and wants_all:
        compiling = config.stash[COMPILING] = CompilingAhead()
        config.option.tx = [compiling.workers.spec] * len(config.option.tx)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any) -> None:
    """Hand out no test before all is compiled."""
    if compiling := node.config.stash.get(COMPILING, None):
        compiling.wait()


@pytest.hookimpl(trylast=True)  # behind the end of the workers
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave no process behind where a run is ended while it compiles."""
    if compiling := session.config.stash.get(COMPILING, None):
        compiling.end()


SLOW = (
    "redo/test_corruption.py",
    "spark/test_standalone_cluster.py",
    "simulation/test_planted.py",
    "spark/test_cluster.py",
    "simulation/test_simulation.py",
    "load/test_kills.py",
    "capture/test_redo_threads.py",
    "test_soak.py",
    "spark/test_session.py",
    "bench/test_suite.py",
    "replicator/test_port.py",
    "replicator/test_targets.py",
    "load/test_live_load.py",
    "datasource/test_source.py",
    "cli/test_secrets.py",
    "cli/test_run.py",
    "oracle/test_live_signals.py",
    "oracle/test_live_run.py",
)
"""Files with long tests: they go first, so that no process has one left when others are done."""

TOGETHER = {
    "cluster": ("spark/test_standalone_cluster.py", "spark/test_cluster.py"),
    "session": (
        *("spark/test_session.py", "spark/test_jobs.py", "spark/test_late_sql.py"),
        "spark/test_broadcasts.py",
        *("datasource/test_containers_queried.py", "datasource/test_parquet_writing.py"),
        *("datasource/test_source.py", "load/test_live_load.py", "load/test_commands.py"),
        *("load/test_initial.py", "load/test_copy_task.py", "load/test_simulator_output.py"),
        *("load/test_sources.py", "load/verification/test_verification.py"),
        *("replicator/test_spark_decoding.py", "replicator/test_real_dictionary.py"),
    ),
}
"""Files that one of the tests' processes does: they share what takes long to start there."""


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out tests by file, and those of `TOGETHER` as if they were in one."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    groups = {f"tests/{name}": group for group, names in TOGETHER.items() for name in names}

    class Together(LoadFileScheduling):  # type: ignore[misc,unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return groups.get(file, file)

    return Together(config, log)


QUICK_ROOMS = frozenset(
    {
        *("conditions", "config", "datatypes", "dictionary", "files", "kernels", "observability"),
        *("ordering", "redo", "scalars", "server", "transactions", "wire"),
    }
)
"""The rooms whose tests need no database, no Spark and, but for `NOT_QUICK`, no time."""

NOT_QUICK = (
    "files/test_owned.py",
    "kernels/test_cache.py",
    "ordering/test_new_incarnation.py",
    "ordering/test_run_end.py",
    "redo/test_corruption.py",
    "server/test_listener.py",
    "server/test_port_connection.py",
    "transactions/test_large_finishing.py",
)
SLOW_FIXTURES = frozenset(("postgres", "spark", "cli", "start_cli"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing of what ``-m quick`` would leave out: it is two thirds of the tests."""
    if config.getoption("markexpr") != "quick":
        return None
    is_other_room = (
        collection_path.parent == ROOT / "tests" and collection_path.name not in QUICK_ROOMS
    )
    return is_other_room or collection_path.as_posix().endswith(NOT_QUICK) or None


def is_quick(item: pytest.Item) -> bool:
    """Whether it is of those that are run after every change: ``pytest -m quick``."""
    return is_quick_file(item.path) and SLOW_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


@cache
def is_quick_file(path: Path) -> bool:
    """Whether most tests of a file are quick."""
    room, *_ = path.relative_to(ROOT / "tests").parts
    return room in QUICK_ROOMS and not path.as_posix().endswith(NOT_QUICK)


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what is quick."""
    if is_quick(item):
        item.add_marker("quick")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow files first, else as they are."""
    places = {ROOT / "tests" / name: place for place, name in enumerate(SLOW)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


# Modules and tests stay to the end: to look for garbage among them is a fifth of collecting them.
gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage again, in what the tests make; build the tree of commands once for all.

    Less often than by default, which is 4 % of what the tests take.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()
    if testing := sys.modules.get("typer.testing"):
        vars(testing)["_get_command"] = cache(vars(testing)["_get_command"])


ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _logging_of_its_own() -> Iterator[None]:
    """A command that a test ran in this process must not go on logging to that test's stderr."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def left_by_others() -> None:
    """Collect what other files have left, and look no more at what they keep.

    For files that look for garbage in each test: a process that has run hundreds of tests keeps so
    much that it takes a second each time.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder with the real logs and vectors; absent in a user's clone."""
    folder = Path(os.environ.get("OLR_PG_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no real redo here: {folder} (set OLR_PG_SHARED to its folder)")
    return folder


@pytest.fixture(scope="session")
def real_log_dir(shared_dir: Path) -> Path:
    """The two real archived logs of 23ai with their dictionary."""
    return shared_dir / "real" / "oracle-free-23ai"


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[EmbeddedPostgres]:
    """A fresh embedded cluster for the whole run (do not stop or kill it in a test)."""
    with own_cluster() as cluster:
        _spare(cluster.connect_string)
        yield cluster


@pytest.fixture
def cluster_folder() -> Iterator[Path]:
    """A folder for a cluster that the test starts and stops."""
    with folder_for_cluster() as folder:
        yield folder


def _spare(postgres: str) -> None:
    """Let a cluster do without what is of use after a power failure, after hours, or to thieves."""
    settings = {
        "fsync": "off",
        "full_page_writes": "off",
        "autovacuum_naptime": "20d",  # off, a target would not be a healthy one
        "max_wal_size": "128MB",
        "scram_iterations": "1",
    }
    with psycopg.connect(postgres, autocommit=True) as connection:
        for name, value in settings.items():
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("SET scram_iterations = 1")  # the session may not have read it yet
        password = sql.Literal(str(conninfo_to_dict(postgres)["password"]))
        connection.execute(sql.SQL("ALTER ROLE CURRENT_USER PASSWORD {}").format(password))
    # Its first connection leaves a file there that the first one to each copy would make again.
    with psycopg.connect(make_conninfo(postgres, dbname="template1")) as connection:
        process = connection.info.backend_pid
    # Nobody can copy a database while somebody is connected to it, and a busy machine can take
    # longer than PostgreSQL's five seconds to end this session.
    with psycopg.connect(postgres, autocommit=True) as connection:
        there = "SELECT FROM pg_stat_activity WHERE pid = %s"
        wait_until(lambda: connection.execute(there, [process]).rowcount == 0)


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> str:
    """The connection string of a cluster; the role is a superuser.

    A fresh one, or of another version where ``OLR_PG_TEST_POSTGRES`` names one that may be filled.
    """
    given = os.environ.get("OLR_PG_TEST_POSTGRES")
    if given:
        return given
    cluster: EmbeddedPostgres = request.getfixturevalue("postgres_cluster")
    return cluster.connect_string


_database_number = itertools.count(1)


@pytest.fixture
def postgres_database(postgres: str) -> Iterator[str]:
    """The connection string of a database of this test's own."""
    with _database(postgres) as database:
        yield database


@pytest.fixture
def second_database(postgres: str) -> Iterator[str]:
    """Another one, in the same cluster."""
    with _database(postgres) as database:
        yield database


@pytest.fixture(scope="module")
def module_database(postgres: str) -> Iterator[str]:
    """One for all tests of a file, which leave it as it was, or make anew what they need."""
    with _database(postgres) as database:
        yield database


@contextmanager
def _database(postgres: str) -> Iterator[str]:
    name = f"test_{next(_database_number)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        # Copied as files: with `fsync` off that is quicker than by the WAL.
        create = sql.SQL("CREATE DATABASE {} STRATEGY file_copy").format(sql.Identifier(name))
        connection.execute(create)
        yield make_conninfo(postgres, dbname=name)
        wait_until(lambda: _is_dropped(connection, name))


def _is_dropped(connection: psycopg.Connection[Any], name: str) -> bool:
    """Drop a database; its sessions that are told to end can need more than the five seconds that
    PostgreSQL gives them.
    """
    try:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
    except psycopg.errors.ObjectInUse:
        return False
    return True


def spark_of_tests() -> SparkSettings:
    """Two local cores; a task gets two attempts. The kernels are loaded once, not by each worker,
    and what is grouped comes to two tasks, not to two hundred."""
    from olr_pg.load.initial import PRELOAD as OF_LOADS
    from olr_pg.replicator.spark_decoding import PRELOAD as OF_DECODING
    from olr_pg.spark.session import SparkSettings

    conf = {"spark.sql.shuffle.partitions": "2"}
    # Each worker would import the driver of Oracle: two thirds of a second.
    preload = (*OF_DECODING, *OF_LOADS, "olr_pg.load.live_rows")
    return SparkSettings("local[2,2]", conf, preload)


@pytest.fixture(scope="session")
def shared_session() -> Iterator[Callable[[], SparkSession]]:
    """Gives the one Spark session of all tests, started by the first one whose work comes to it."""
    from olr_pg.spark.session import get_session, stop_session

    yield lambda: get_session(spark_of_tests())
    stop_session()


@pytest.fixture(scope="session")
def spark(shared_session: Callable[[], SparkSession]) -> SparkSession:
    """The one Spark session of all tests."""
    return shared_session()


@pytest.fixture
def one_session(
    shared_session: Callable[[], SparkSession], monkeypatch: pytest.MonkeyPatch
) -> Callable[[], SparkSession]:
    """The run uses the tests' Spark session, where it needs one, instead of one of its own."""
    monkeypatch.setattr("olr_pg.replicator.spark_decoding.get_session", lambda _: shared_session())
    monkeypatch.setattr("olr_pg.appliance.appliance.stop_session", lambda: None)
    return shared_session


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """A master and two workers of one core each; a test leaves as many as it found."""
    from tests.spark.standalone_cluster import StandaloneCluster

    with StandaloneCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.add_worker()
        cluster.add_worker()
        yield cluster
