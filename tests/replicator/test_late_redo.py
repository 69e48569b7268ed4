"""Redo that turns up when others have been delivered without it is an error, not a loss."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from olr_pg.capture.logs import discover_logs
from olr_pg.capture.redo_threads import KnownThreads
from olr_pg.cli.main import app
from olr_pg.errors import Code, OlrPgError
from olr_pg.load import copy_task
from tests.advice import followed
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.scripted_source import SHOP, Rac, Reader, ScriptedSource, make_rac
from tests.replicator.test_ddl_pipeline import rows_of, run_once

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(900)  # the first test may compile the kernels


@pytest.fixture(scope="module")
def rac(tmp_path_factory: pytest.TempPathFactory) -> Rac:
    return make_rac(tmp_path_factory.mktemp("rac"))


def test_a_closed_thread_whose_logs_come_after_others_were_delivered(
    rac: Rac, tmp_path: Path
) -> None:
    """A restart finds the logs of one redo thread; those of the other are listed later."""
    threads = tmp_path / "threads.json"
    threads.write_text('{"version": 1, "threads": [1, 2]}')
    start = rac.one[len(rac.one) // 2].header.first_scn
    source = rac.source(1)
    source.logs = [log for log in rac.one if log.next_scn > start]
    with Reader(source, start, threads_file=threads) as reader:
        reader.settle()
        before = reader.take()
        assert before
        assert reader.failure() is None
        source.logs += [log for log in rac.two if log.next_scn > start]
        reader.settle()
        failure = reader.failure()
    assert failure is not None
    assert failure.code == 2014
    assert failure.where["thread"] == 2
    late = int(failure.where["scn"])
    assert late in {one.commit_scn for one in rac.truth}
    assert late <= before[-1].commit_scn


def test_the_last_logs_of_a_closed_thread_that_come_after_others_were_delivered(rac: Rac) -> None:
    source = rac.source(1)
    source.logs = rac.one + rac.two[:3]
    with Reader(source) as reader:
        reader.settle()
        assert reader.failure() is None
        source.logs = rac.one + rac.two
        reader.settle()
        failure = reader.failure()
    assert failure is not None
    assert failure.code == 2014
    assert failure.where["thread"] == 2


def test_a_restart_does_not_skip_what_came_too_late(rac: Rac, tmp_path: Path) -> None:
    """The checkpoint, or the ledger's positions of its tables, have passed it."""
    threads = tmp_path / "threads.json"
    source = rac.source(1)
    source.logs = rac.one + rac.two[:3]
    with Reader(source, threads_file=threads) as reader:
        reader.settle()
        scn = reader.delivery.open_scn()
        source.logs = rac.one + rac.two
        reader.settle()
        first = reader.failure()
    assert first is not None
    for _ in range(2):
        with (
            pytest.raises(OlrPgError) as caught,
            Reader(source, scn, resumed=True, threads_file=threads),
        ):
            pass
        assert caught.value.code == 2014
        assert first.detail in caught.value.detail
        assert caught.value.where["path"] == str(threads)
    # Another target has its own positions.
    other = KnownThreads(threads)
    other.check_late("other")
    other.forget()
    # The target was emptied. From the oldest log on, with all threads in place, nothing is late.
    with pytest.raises(OlrPgError), Reader(source, threads_file=threads):
        pass
    threads.unlink()
    with Reader(source, once=True, threads_file=threads) as reader:
        reader.drain()
        assert reader.take() == rac.truth


@pytest.mark.parametrize("followed", [True, False])
def test_ddl_that_comes_after_others_were_delivered(tmp_path: Path, *, followed: bool) -> None:
    made = DdlSource(tmp_path, followed=followed, threads=2)
    made.create("A", {"ID": NUMBER, "NAME": TEXT})
    made.take_snapshot()
    made.insert("A", 1, "one", thread=2)
    made.threads[1].switch()
    made.drop("A")
    made.instance.advance_scn()
    made.create("B", {"ID": NUMBER})
    made.session.commit()
    made.insert("A", 2, "two", thread=2)
    made.finish()
    logs = discover_logs([str(tmp_path / "logs")])
    assert made.snapshot is not None
    source = ScriptedSource(made.snapshot, (2,))
    source.logs = [log for log in logs if log.header.thread == 2]
    threads = tmp_path / "threads.json"
    threads.write_text('{"version": 1, "threads": [1, 2]}')
    with Reader(source, made.snapshot.scn, query=SHOP, threads_file=threads) as reader:
        reader.settle()
        assert reader.failure() is None
        source.logs = logs
        reader.settle()
        failure = reader.failure()
    assert failure is not None
    assert failure.code == 2014
    assert failure.where["thread"] == 1


@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("way", ["load", "repair"])
def test_the_advice_brings_what_came_too_late(
    tmp_path: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """If the tables were emptied, the ledger would skip all that was applied to them."""
    monkeypatch.setattr(copy_task, "HERE_BYTES", 1 << 40)
    made = DdlSource(tmp_path / "s", threads=2)
    made.create("A", {"ID": NUMBER, "NAME": TEXT})
    made.take_snapshot()
    for number in (1, 2, 3, 4):
        made.insert("A", number, "text", thread=1 + number % 2)
    made.finish()
    late = [log.path for log in discover_logs([str(made.directory / "logs")])]
    late = [path for path in late if discover_logs([path])[0].header.thread == 1]
    for path in late:
        shutil.move(path, tmp_path)
    run_once(made, postgres_database, ["A"])
    for path in late:
        shutil.copy(tmp_path / path.rpartition("/")[2], path)
    for _ in range(2):
        with pytest.raises(OlrPgError) as caught:
            run_once(made, postgres_database, ["A"])
        words = {"load": "initial-load --anew", "repair": "repair --differences"}
        followed(
            caught.value, Code.REDO_TOO_LATE, "remove `threads.json` in `context.data`", words[way]
        )
    (made.directory / "data" / "threads.json").unlink()
    expected = made.rows("A")
    config = export_rows(made, tmp_path / "tables")
    document = config.read_text("utf-8")
    if way == "load":
        command(config, "initial-load", "--anew", "--table", "SHOP.A")
    run_once(made, postgres_database, ["A"])
    if way == "repair":
        file = str(tmp_path / "differences.json")
        config.write_text(document, "utf-8")
        command(config, "verify", "--differences", file, code=1)
        command(config, "repair", "--differences", file, "--yes")
        run_once(made, postgres_database, ["A"])
    with psycopg.connect(postgres_database) as connection:
        assert rows_of(connection, "A") == expected


def export_rows(source: DdlSource, folder: Path) -> Path:
    """Write the present rows of table A of the source, which an offline source cannot read itself,
    and name their folder in the configuration of `run_once`. Return the configuration.
    """
    folder.mkdir()
    rows = source.rows("A")
    columns = {
        "ID": pa.array([row["ID"] for row in rows], pa.int64()),
        "NAME": pa.array([row["NAME"] for row in rows], pa.string()),
    }
    known = {"olr_pg.scn": str(source.instance.scn)}
    pq.write_table(pa.table(columns).replace_schema_metadata(known), folder / "SHOP.A.parquet")
    config = source.directory / "config.json"
    document = json.loads(config.read_text("utf-8"))
    document["source"]["tables"] = str(folder)
    config.write_text(json.dumps(document), "utf-8")
    return config


def command(config: Path, *words: str, code: int = 0) -> None:
    result = CliRunner().invoke(app, [*words, "--config", str(config)])
    assert result.exit_code == code, result.output
