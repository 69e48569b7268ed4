"""Two PDBs of a live database, both with SHOP.A and SHOP.B: their redo, rows and dictionaries."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from olr_pg.capture.logs import open_log
from olr_pg.dictionary.structure import Sequence, Structure
from olr_pg.simulator.oracle_net.row_versions import RowVersions
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import ARCHIVE, OracleState
from olr_pg.simulator.truth import truth_lines
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NAMES = ("PDB1", "PDB2")


class LiveTwins:
    """A database whose logs are archived, and seen with their changes, when a test says so.

    Args:
        folder: for its files.
        rows: of each table before the first look at it.
    """

    def __init__(self, folder: Path, rows: int = 20) -> None:
        self.folder = folder
        one = DdlSource(folder / "one", con_id=3)
        self.sources = (one, DdlSource(folder / "other", con_id=4, beside=one))
        self.logs = one.directory / "logs"
        for source in self.sources:
            for name in ("A", "B"):
                source.create(name, {"ID": NUMBER, "NAME": TEXT})
            source.take_snapshot()
        self.work(0, rows)
        self.server = StandIn(OracleState(self._snapshot(0), dbid=one.instance.identity.dbid))
        self.archive()

    def close(self) -> None:
        self.server.close()
        assert self.server.malformed == []

    def _snapshot(self, number: int) -> Any:
        snapshot = self.sources[number].snapshot
        assert snapshot is not None
        return snapshot

    def work(self, first: int, count: int) -> None:
        """Insert rows with other names in each PDB, whose keys and XIDs are the same."""
        for key in range(first, first + count):
            for name in ("A", "B"):
                for source in self.sources:
                    table = source.tables[name]
                    extra = [key] * (len(table.columns) - 2)
                    source.insert(name, key, f"{source.container.name} {name} {key}", *extra)

    def archive(self) -> None:
        """End the log and archive it: what was done is there for all."""
        for thread in self.sources[0].threads:
            thread.flush()
            thread.switch()
        self.look()

    def look(self) -> None:
        """Let the containers show what there is now: dictionary, rows, logs."""
        for number, source in enumerate(self.sources):
            sequence = Sequence(owner="SHOP", name="KEYS", next=101 + 10 * number, increment=10)
            structure = Structure(sequences=(sequence,))
            source.snapshot = replace(source.take_snapshot(), structure=structure)
        logs = sorted(self.logs.iterdir())
        for number, name in enumerate(NAMES):
            source, snapshot = self.sources[number], self._snapshot(number)
            state = OracleState(snapshot, dbid=source.instance.identity.dbid)
            state.scn = max(open_log(str(path)).next_scn for path in logs) - 1
            own = [table for table in snapshot.tables if table.owner == "SHOP"]
            versions = RowVersions(state.catalogue, own)
            committed = [
                t for t in source.instance.committed if t.con_id == snapshot.database.con_id
            ]
            versions.read_truth(truth_lines(committed))
            for path in logs:
                state.archived(path.name, open_log(str(path)).header, moves_scn=False)
            self.server.containers[name] = state
        self.server.state = self.server.containers[NAMES[0]]

    def rows(self, number: int, name: str) -> list[dict[str, Any]]:
        """The rows of a PDB's table as they are."""
        return self.sources[number].rows(name)

    def write_config(self, target: str, tables: Iterable[str] = ("SHOP.*",), **apply: Any) -> Path:
        document = {
            "context": {"data": str(self.folder / "data")},
            "source": {
                "kind": "oracle",
                "user": "olr",
                "password": "olr",
                "server": self.server.connect_string,
                "containers": list(NAMES),
                "path-mapping": [ARCHIVE, str(self.logs)],
                "poll-ms": 20,
            },
            "target": {"address": "127.0.0.1:0"},
            "apply": {
                "connect-string": target,
                "tables": list(tables),
                "create-tables": True,
                **apply,
            },
            "spark": {"master": "local[2,2]"},
        }
        path = self.folder / "config.json"
        path.write_text(json.dumps(document), "utf-8")
        return path
