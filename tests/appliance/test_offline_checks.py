"""``olr-pg doctor`` of an offline source: what is wrong with the copied logs.

A run that creates tables for a live source says whose rows redo does not hold.
"""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.appliance.appliance import applier_settings
from olr_pg.appliance.offline_checks import (
    check_any_log,
    check_encryption,
    check_logs,
    check_supplemental,
    warn_of_rows,
)
from olr_pg.capture.logs import open_log
from olr_pg.config.reading import load_config
from olr_pg.datatypes.convert import DEFAULT_FACTS
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.dictionary.snapshot_file import dump_snapshot
from olr_pg.dictionary.sys_rows import SysRows
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.sources import open_tables, target_settings
from olr_pg.observability.findings import Severity
from olr_pg.server.checkpoint import FILE_NAME, Checkpoint, source_identity
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.simulated_files import Summary
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from olr_pg.wire.frames import ByteOrder
from tests.oracle.live_source import LiveSource
from tests.oracle.live_twins import LiveTwins

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    paths = copies.paths
    for path in paths:
        path.with_suffix(".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    what = only(copies, Severity.ERROR)
    assert what.startswith("OLR-02023 ")
    assert f"the file is compressed with gzip; {len(paths) - 1} more files likewise" in what


def test_a_run_that_ends_by_itself_needs_a_log(copies: Copies) -> None:
    copies.findings()
    source: OfflineSource = load_config(copies.folder / "config.json").source  # type: ignore[assignment]
    check_any_log(source)
    for path in copies.paths:
        path.unlink()
    with pytest.raises(OlrPgError) as caught:
        check_any_log(source)
    assert caught.value.code == Code.NO_LOGS


KEYED = Table("S", "KEYED", 10, 10, (Column("ID", 1, 1, 1, 2, 22),), key_kind=KeyKind.PRIMARY,
              key=(1,))  # fmt: skip
KEYLESS = replace(KEYED, name="KEYLESS", obj=11, dataobj=11, key_kind=KeyKind.NONE, key=())
EMPTY: dict[str, Any] = {
    name: [] for name, field in SysRows.model_fields.items() if field.is_required()
}
OWNER = {"user": 5, "name": "S"}
TOLD = {"supp-log-db-min": 1, "supp-log-db-primary": 0, "supp-log-db-all": 0}


def rows(**changes: Any) -> SysRows:
    return SysRows.model_validate({**EMPTY, "sys_user": [OWNER], **changes})


def told(**changes: int) -> dict[str, int]:
    return {**TOLD, **{f"supp-log-db-{name}": level for name, level in changes.items()}}


def found(sys_rows: SysRows | None) -> list[tuple[Severity, str]]:
    snapshot = Snapshot(1, Database("TEST"), (KEYED, KEYLESS), sys_rows)
    findings = list(check_supplemental(snapshot, snapshot.tables))
    assert {one.check for one in findings} <= {"offline.supplemental"}
    return [(one.severity, one.mend[0]) for one in findings]


def statement(name: str, level: str) -> tuple[Severity, str]:
    text = f'ALTER TABLE "S"."{name}" ADD SUPPLEMENTAL LOG DATA ({level}) COLUMNS;'
    return Severity.ERROR, text


BOTH = [statement("KEYED", "PRIMARY KEY"), statement("KEYLESS", "ALL")]


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        (told(), BOTH),
        (told(primary=1), BOTH[1:]),
        (told(all=1), []),
        (told() | {"sys_user": [{**OWNER, "spare1": 8}]}, []),
        (told() | {"sys_user": [{**OWNER, "spare1": 1}]}, BOTH[1:]),
        (told() | {"sys_cdef": [{"con": 1, "obj": 10, "type": 14}]}, BOTH[1:]),
        (told() | {"sys_cdef": [{"con": 1, "obj": 11, "type": 17}]}, BOTH[:1]),
        (
            told()
            | {
                "sys_cdef": [{"con": 1, "obj": 10, "type": 12}],
                "sys_ccol": [{"con": 1, "obj": 10, "int-col": 1}],
            },
            BOTH[1:],
        ),
    ],
)
def test_every_level_counts(changes: dict[str, Any], wanted: list[tuple[Severity, str]]) -> None:
    assert found(rows(**changes)) == wanted


def test_without_minimal_logging_nothing_else_counts() -> None:
    assert found(rows(**told(min=0, all=1))) == [
        (Severity.ERROR, "ALTER DATABASE ADD SUPPLEMENTAL LOG DATA;")
    ]


def test_what_the_dictionary_does_not_tell_is_asked_for() -> None:
    ((severity, mend),) = found(rows())
    assert severity is Severity.WARNING
    assert "FROM V$DATABASE" in mend
    assert found(None) == []


def test_the_levels_are_kept_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "dictionary.json"
    snapshot = Snapshot(1, Database("TEST"), (KEYED,), rows(**told(primary=1)))
    path.write_bytes(dump_snapshot(snapshot))
    assert load_snapshot(str(path)) == snapshot


PLACES = {"obj": 10, "data-obj": 10, "clu-cols": 0, "flags": 0, "property": 0}
USERS = {"ts": 4, "name": "USERS", "block-size": 8192, "state": 1}


@pytest.mark.parametrize(
    ("sys_rows", "is_said"),
    [
        (None, False),
        (rows(sys_tab=[PLACES | {"ts": 4}], sys_ts=[USERS | {"flags": 0}]), False),
        # As an older version wrote it, and as a schema checkpoint is.
        (rows(sys_tab=[PLACES], sys_ts=[USERS]), True),
        (rows(sys_tab=[PLACES | {"ts": 4}]), True),
    ],
)
def test_a_dictionary_that_does_not_tell_of_encryption(
    sys_rows: SysRows | None, is_said: bool
) -> None:
    found = list(check_encryption(Snapshot(1, Database("TEST"), (KEYED,), sys_rows)))
    assert [(one.check, one.severity) for one in found] == (
        [("offline.encryption", Severity.WARNING)] if is_said else []
    )


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveSource]:
    folder = tmp_path / "source"
    summary = simulate(
        3, folder, workload="orders", size=20_000, shape=demo_shape(), prefilled=True
    )
    source = LiveSource(summary, tmp_path)
    source.archive_all()
    source.keep_rows()
    yield source
    source.close()


def warnings(live: LiveSource, folder: Path, database: str, **changes: Any) -> list[str]:
    config = load_config(live.write_config(folder, database))
    assert config.apply is not None
    apply = config.apply.model_copy(update={"create_tables": True, **changes})
    settings = applier_settings(apply, database, ("", 0), ByteOrder.LITTLE, DEFAULT_FACTS)
    with capture_logs() as logged:
        warn_of_rows(config, settings, live.summary.snapshot.tables)
    assert all(line["log_level"] == "warning" for line in logged)
    return [str(line["error"]) for line in logged]


def test_tables_with_rows_are_named(
    live: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    (warning,) = warnings(live, tmp_path, postgres_database)
    assert warning.startswith("OLR-01150")
    filled = [name for name, rows in live.summary.rows.items() if rows]
    assert any(name in warning for name in filled)
    assert warnings(live, tmp_path, postgres_database, create_tables=False) == []


def test_tables_that_are_there_are_not(
    live: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    with psycopg.connect(postgres_database) as connection:
        connection.execute("CREATE SCHEMA shop")
        for table in live.summary.snapshot.tables:
            connection.execute(f"CREATE TABLE shop.{table.name.lower()} (id int)".encode())
    assert warnings(live, tmp_path, postgres_database) == []


def test_what_cannot_be_asked_says_nothing(
    live: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    catalogue = live.state.catalogue
    catalogue.denied |= {table.name for table in live.summary.snapshot.tables}
    assert warnings(live, tmp_path, postgres_database) == []
    nowhere = "host=127.0.0.1 port=1 dbname=x"
    assert warnings(live, tmp_path, nowhere) == []


def test_each_container_is_asked_for_its_own(tmp_path: Path, postgres_database: str) -> None:
    twins = LiveTwins(tmp_path, rows=1)
    try:
        config = load_config(twins.write_config(postgres_database))
        with open_tables(config) as source, capture_logs() as logged:
            settings = target_settings(config, source.snapshot, postgres_database)
            twins.server.containers["PDB1"].catalogue.update('DELETE FROM SHOP."A/versions"')
            warn_of_rows(config, settings, source.choose(()))
    finally:
        twins.close()
    (line,) = logged
    assert "PDB1.SHOP.A" not in str(line["error"])
    assert "PDB1.SHOP.B, PDB2.SHOP.A, PDB2.SHOP.B" in str(line["error"])
