"""The demo from the generated logs to the compared tables, on real parts.

What the demo shows.
"""

from __future__ import annotations

import signal
from io import StringIO
from typing import TYPE_CHECKING

import psycopg
import pytest
from rich.console import Console

from olr_pg.appliance.data_lock import hold_data_lock
from olr_pg.appliance.demo_run import (
    PREFIX,
    DemoSource,
    DemoTableProgress,
    DemoView,
    Progress,
    compare_tables,
    folder_size,
    remove_demos,
    run_demo,
)
from olr_pg.errors import OlrPgError
from olr_pg.monitor.lag import Lag
from olr_pg.postgres.embedded import start_embedded
from olr_pg.simulator.simulation import simulate
from tests.simulator.table_rows import read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def in_background() -> Iterator[None]:
    """As a job that a shell has started with ``&``."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.SIG_IGN


@pytest.mark.usefixtures("one_session", "in_background")
def test_the_demo_ends_with_identical_tables(tmp_path: Path) -> None:
    printed = StringIO()
    console = Console(file=printed, width=200)
    folder = tmp_path / "demo"
    code = run_demo(folder, rate=20_000, seconds=1, keep_running=False, console=console)
    text = printed.getvalue()
    assert code == 0
    for table in ("SHOP.CUSTOMERS", "SHOP.ORDERS", "SHOP.ORDER_LINES"):
        line = next(line for line in text.splitlines() if table in line)
        assert "yes" in line
    assert "changes applied" in text
    assert "Source and target are identical." in text
    assert str(folder) in text


def test_a_difference_is_found_and_shown(tmp_path: Path, postgres_database: str) -> None:
    summary = simulate(1, tmp_path, workload="orders", size=30_000)
    table = next(table for table in summary.snapshot.tables if table.name == "SETTINGS")
    rows = read_rows(tmp_path / "final", "SHOP.SETTINGS")
    with psycopg.connect(postgres_database) as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute("CREATE TABLE shop.settings (name text, value text)")
        for row in [*rows[1:], {**rows[0], "VALUE": "another"}]:
            connection.execute(
                "INSERT INTO shop.settings VALUES (%s, %s)", (row["NAME"], row["VALUE"])
            )
    (outcome,) = compare_tables(tmp_path / "final", [table], postgres_database)
    assert (outcome.source_rows, outcome.target_rows, outcome.identical) == (3, 3, False)
    assert list(outcome.missing) == [(rows[0]["NAME"], rows[0]["VALUE"])]
    assert list(outcome.surplus) == [(rows[0]["NAME"], "another")]


def test_a_source_that_cannot_start_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "no folder"
    folder.touch()
    source = DemoSource(folder, 1, 1_000)
    try:
        with pytest.raises(OlrPgError) as caught:
            source.wait_until_archiving()
    finally:
        source.abandon()
    assert caught.value.code == 8051
    assert "OLR-08002" in caught.value.detail


def table(commit_scn: int, changes: int = 0, *, stopped: bool = False) -> DemoTableProgress:
    return DemoTableProgress(commit_scn, changes, 0, 0, changes, stopped)


@pytest.mark.parametrize(
    ("tables", "complete"),
    [
        ({"S.A": table(10), "S.B": table(20)}, True),
        ({"S.A": table(10), "S.B": table(19)}, False),
        ({"S.A": table(10)}, False),
        ({"S.A": table(10), "S.B": table(5, stopped=True)}, True),
    ],
)
def test_it_is_complete_with_the_last_commit_of_each_table(
    tables: dict[str, DemoTableProgress], complete: bool
) -> None:
    assert Progress(tables, 1, Lag()).has({"S.A": 10, "S.B": 20}) is complete


def test_without_a_terminal_it_prints_lines() -> None:
    printed = StringIO()
    view = DemoView(Console(file=printed, width=200))
    with view.shown():
        view.show(Progress({}, 0, Lag()))
        view.show(Progress({"S.A": table(10, 1_200)}, 3, Lag(0.01, 0.5, 0.25, 0.75)))
        view.show(Progress({"S.A": table(11, 1_300)}, 4, Lag()))
    waiting, line = printed.getvalue().splitlines()
    assert waiting.startswith("0 logs archived, nothing applied yet: ")
    assert line.startswith("3 logs archived, 1,200 changes applied, ")
    assert line.endswith("lag 1.51 s (reading 0.01, decoding 0.50, queue 0.25, apply 0.75)")


def test_on_a_terminal_it_is_a_table() -> None:
    printed = StringIO()
    view = DemoView(Console(file=printed, width=120, force_terminal=True))
    with view.shown():
        view.show(Progress({"SHOP.ORDERS": table(10, 1_200)}, 3, Lag()))
    assert "SHOP.ORDERS" in printed.getvalue()
    assert "Rows in PostgreSQL" in printed.getvalue()


def remains(root: Path, name: str) -> Path:
    folder = root / f"{PREFIX}{name}"
    (folder / "data").mkdir(parents=True)
    (folder / "dictionary.json").write_text("12345")
    return folder


def test_the_folder_goes_and_the_server_ends(tmp_path: Path) -> None:
    folder = remains(tmp_path, "one")
    cluster = start_embedded(folder / "data" / "postgres")
    place = cluster.directory
    with psycopg.connect(cluster.connect_string):
        pass
    # The demo's own process has ended.
    cluster._lock.close()
    (one,) = remove_demos(tmp_path)
    assert (one.folder, one.stopped, one.kept) == (folder, True, "")
    assert one.size > 5
    assert not folder.exists()
    assert not place.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(cluster.connect_string)


def test_a_demo_at_work_is_left(tmp_path: Path) -> None:
    folder = remains(tmp_path, "busy")
    with hold_data_lock(folder / "data"):
        (one,) = remove_demos(tmp_path)
    assert one.kept == "a demo is running in it"
    assert folder.exists()


def test_nothing_else_is_touched(tmp_path: Path) -> None:
    other = tmp_path / "precious"
    other.mkdir()
    (other / "file").write_text("x")
    (tmp_path / f"{PREFIX}link").symlink_to(other)
    (tmp_path / f"{PREFIX}file").write_text("x")
    broken = tmp_path / f"{PREFIX}early"
    broken.mkdir()
    assert [one.folder for one in remove_demos(tmp_path)] == [broken]
    assert (other / "file").exists()
    assert folder_size(other) == 1
