"""``olr-pg doctor`` of an offline source: what is wrong with the copied logs."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from olr_pg.appliance.offline_checks import check_any_log, check_logs
from olr_pg.capture.logs import open_log
from olr_pg.config.reading import load_config
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Severity
from olr_pg.server.checkpoint import FILE_NAME, Checkpoint, source_identity
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.simulated_files import Summary
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace

if TYPE_CHECKING:
    from olr_pg.config.source_section import OfflineSource


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    folder = tmp_path_factory.mktemp("source")
    shape = replace(demo_shape(), pace=Pace(log_blocks=100))
    return simulate(3, folder, workload="orders", size=400_000, shape=shape)


class Copies:
    """A configuration, and the logs that were copied for it."""

    def __init__(self, summary: Summary, folder: Path) -> None:
        self.logs = folder / "logs"
        self.data = folder / "data"
        self.logs.mkdir()
        self.data.mkdir()
        for path in summary.logs:
            shutil.copy(path, self.logs)
        self.dictionary = summary.logs[0].parent.parent / "dictionary.json"
        self.snapshot = load_snapshot(str(self.dictionary))
        self.folder = folder

    @property
    def paths(self) -> list[Path]:
        """In the order of their sequences."""
        return sorted(self.logs.iterdir(), key=lambda path: open_log(str(path)).header.sequence)

    def begin_at(self, scn: int) -> None:
        """Something was replicated: decoding goes on at `scn`."""
        Checkpoint(self.data / FILE_NAME, source_identity(self.snapshot.database)).save(scn)

    def findings(self, **more: str) -> list[tuple[Severity, str]]:
        """How bad, and what; all are of the logs."""
        document = {
            "context": {"data": str(self.data)},
            "source": {
                "kind": "offline",
                "dictionary": str(self.dictionary),
                "logs": str(self.logs),
                **more,
            },
            "target": {"address": "127.0.0.1:0"},
        }
        path = self.folder / "config.json"
        path.write_text(json.dumps(document), "utf-8")
        config = load_config(path)
        source: OfflineSource = config.source  # type: ignore[assignment]
        found = check_logs(config, source, self.snapshot)
        assert {one.check for one in found} <= {"offline.logs"}
        assert all(one.mend for one in found)
        return [(one.severity, one.what) for one in found]


@pytest.fixture
def copies(summary: Summary, tmp_path: Path) -> Copies:
    return Copies(summary, tmp_path)


def only(copies: Copies, severity: Severity) -> str:
    ((found, what),) = copies.findings()
    assert found is severity
    return what


def test_whole_copies_are_fine(copies: Copies) -> None:
    assert copies.findings() == []


def test_no_log_at_all(copies: Copies) -> None:
    for path in copies.paths:
        path.unlink()
    assert "OLR-02001" in only(copies, Severity.WARNING)


def test_a_place_that_is_missing(copies: Copies) -> None:
    shutil.rmtree(copies.logs)
    assert "OLR-02002" in only(copies, Severity.ERROR)


def test_a_log_that_is_missing_between_others(copies: Copies) -> None:
    gone = copies.paths[2]
    sequence = open_log(str(gone)).header.sequence
    gone.unlink()
    what = only(copies, Severity.ERROR)
    assert "OLR-02010" in what
    assert f"sequence {sequence}" in what


def test_a_log_that_is_online_is_not_missing(copies: Copies, tmp_path: Path) -> None:
    online = tmp_path / "online"
    online.mkdir()
    copies.paths[2].rename(online / "redo01.log")
    ((_, what),) = copies.findings()
    assert "OLR-02010" in what
    options = {"redo": "online", "online-logs": str(online)}
    assert copies.findings(**options) == []
    shutil.rmtree(online)
    ((severity, what),) = copies.findings(**options)
    assert severity is Severity.ERROR
    assert "OLR-02002" in what
    assert str(online) in what


def test_a_log_that_is_not_needed_any_more_is_not_missed(copies: Copies) -> None:
    copies.begin_at(open_log(str(copies.paths[3])).header.first_scn)
    copies.paths[1].unlink()
    assert copies.findings() == []


def test_a_beginning_that_is_gone(copies: Copies) -> None:
    first, second, *_ = copies.paths
    copies.begin_at(open_log(str(first)).header.first_scn + 1)
    first.unlink()
    what = only(copies, Severity.ERROR)
    assert "OLR-02010" in what
    assert str(open_log(str(second)).header.first_scn) in what


def test_a_log_that_is_still_being_copied(copies: Copies) -> None:
    last = copies.paths[-1]
    last.write_bytes(last.read_bytes()[:-512])
    assert "OLR-02004" in only(copies, Severity.WARNING)


def test_logs_of_another_database(copies: Copies) -> None:
    other = replace(copies.snapshot.database, name="OTHER")
    copies.snapshot = replace(copies.snapshot, database=other)
    assert "OLR-02009" in only(copies, Severity.ERROR)


def test_the_first_log_behind_the_dictionary_is_not_there(copies: Copies) -> None:
    copies.paths[0].unlink()
    copies.snapshot = replace(copies.snapshot, scn=open_log(str(copies.paths[0])).header.first_scn)
    assert copies.findings() == []
    copies.snapshot = replace(copies.snapshot, scn=copies.snapshot.scn - 1)
    assert "the dictionary is known only up to SCN" in only(copies, Severity.ERROR)


def test_a_file_that_is_no_log(copies: Copies) -> None:
    (copies.logs / "readme.txt").write_text("nothing", "utf-8")
    what = only(copies, Severity.WARNING)
    assert "readme.txt" in what


def test_compressed_copies_are_named_with_what_to_do(copies: Copies) -> None:
    for path in copies.paths:
        path.with_suffix(".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    compressed, none = (what for _, what in copies.findings())
    assert compressed.startswith("skipped, because it is compressed with gzip: ")
    assert "OLR-02001" in none


def test_a_run_that_ends_by_itself_needs_a_log(copies: Copies) -> None:
    copies.findings()
    source: OfflineSource = load_config(copies.folder / "config.json").source  # type: ignore[assignment]
    check_any_log(source)
    for path in copies.paths:
        path.unlink()
    with pytest.raises(OlrPgError) as caught:
        check_any_log(source)
    assert caught.value.code == Code.NO_LOGS
