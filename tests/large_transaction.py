"""One source transaction larger than memory, through the whole appliance. By hand.

    uv run python -m tests.large_transaction --gigabytes 10 --max-mb 512

Archived logs of 512 MB hold one transaction of so much redo: inserts of rows of about 8 kB, or of
others (``--text``), or of rows with a BLOB outside of the row (``--lob``, ``--basicfile``), with
files encrypted (``--encrypted``). With ``--savepoints`` half of the rows are taken back, in
stretches, each by a rollback to a savepoint.
``olr-pg run --once`` replicates it into a PostgreSQL. Then must hold: every row is there once with
its values, in one target transaction. Printed as JSON: how long it took, the highest resident and
anonymous memory of each kind of process, and the most that waited on disk. It needs about four
times the redo on disk, most of it in ``--folder``. Exit code 0 when all held.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil
import psycopg

from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.postgres.embedded import start_embedded
from olr_pg.simulator.fields import cells
from olr_pg.simulator.fields.cells import BLOB, basic_pointers, lob_id, long_field, secure_extents
from olr_pg.simulator.writer.log_file import LogIdentity, LwnGroup, OpenLog
from tests.lobs.lob_redo import LOB_OBJ, TABLE_OBJ, TIME, UNDO_BLOCK, LobRedo, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.simulator.writer.log_file import RedoRecord

LOG_BYTES: Final = 512_000_000
GROUP_ROWS: Final = 100
TEXT_BYTES: Final = 3_900
OVERHEAD: Final = 450
"""Bytes of redo of a row beside its two texts, about."""

MARKER_BYTES: Final = 350
"""Of the redo that takes a row back, about."""

SAVEPOINTS: Final = 4
"""How many times rows are taken back."""

FIRST_SCN: Final = 1000
LOOK_SECONDS: Final = 0.2
NAME: Final = "LARGE"

_CHECK: Final = """
SELECT count(*), count(DISTINCT id), sum(id)::int8, count(DISTINCT xmin::text),
    count(*) FILTER (WHERE {whole})
FROM app.large
"""

FIRST_LOB: Final = 0x01_00_00_00_00_00
PAGE_DBA: Final = 0x900
IMAGE_COLUMN: Final = 3


@dataclass(frozen=True)
class RowForm:
    """What the rows are.

    Attributes:
        size: bytes of each of the two texts, or of the BLOB.
        lob: whether it is a BLOB, and
        basicfile: which is not a SECUREFILE: its pages name no transaction.
        savepoints: whether for each row another one is written and taken back.
    """

    size: int
    lob: bool = False
    basicfile: bool = False
    savepoints: bool = False

    def snapshot(self) -> Snapshot:
        """The dictionary of ``APP.LARGE``: an ID NUMBER, and two VARCHAR2 or a CLOB and a BLOB."""
        columns: tuple[Column, ...] = (
            Column("ID", 1, 1, 1, 2, 22, nullable=False),
            Column("A", 2, 2, 2, 1, 4000, charset_id=873, charset_form=1),
            Column("B", 3, 3, 3, 1, 4000, charset_id=873, charset_form=1),
        )
        if self.lob:
            columns = table(securefile=not self.basicfile).columns
        large = Table(
            "APP", NAME, TABLE_OBJ, TABLE_OBJ, columns, key_kind=KeyKind.PRIMARY, key=(1,)
        )
        return Snapshot(FIRST_SCN, Database(NAME, activation=1, resetlogs=(1,)), (large,))

    def records(self, redo: LobRedo) -> list[RedoRecord]:
        """The redo of the first row, each time with an undo record of its own."""
        first = cells.number(Decimal(key(0))).raw
        count = len(redo.records)
        if not self.lob:
            redo.insert_row(first, b"a" * self.size, b"b" * self.size)
        elif self.basicfile:
            field = long_field(redo.redo, LOB_OBJ[IMAGE_COLUMN], FIRST_LOB, 0, b"c" * self.size)
            redo.emit(redo.vector((19, 1), [field], LOB_OBJ[IMAGE_COLUMN], dba=PAGE_DBA, typ=1))
            redo.insert_row(first, None, basic_pointers(BLOB, FIRST_LOB, self.size, [PAGE_DBA]))
        else:
            redo.direct_page(IMAGE_COLUMN, FIRST_LOB, PAGE_DBA, b"c" * self.size)
            extents = ((PAGE_DBA, 1),)
            redo.insert_row(first, None, secure_extents(BLOB, FIRST_LOB, self.size, extents))
        made, redo.records = redo.records[count:], redo.records[:count]
        return made

    @property
    def bytes_of_row(self) -> int:
        """Bytes of redo, about."""
        once = (self.size if self.lob else 2 * self.size) + OVERHEAD
        return 2 * once + MARKER_BYTES if self.savepoints else once

    @property
    def check(self) -> str:
        """The query that looks at all rows."""
        if self.lob:
            whole = f"image = decode(repeat('63', {self.size}), 'hex')"
        else:
            whole = f"a = repeat('a', {self.size}) AND b = repeat('b', {self.size})"
        return _CHECK.format(whole=whole)


def key(number: int) -> int:
    """The ID of a row: all have five digits to the base 100, none of which is 0."""
    return sum((1 + number // 99**place % 99) * 100**place for place in range(5))


class GroupMaker:
    """Makes LWNs of the transaction: the records of some rows again and again, with other IDs."""

    def __init__(self, redo: LobRedo, form: RowForm) -> None:
        self._redo = redo
        self._first = cells.number(Decimal(key(0))).raw
        self._block = redo.redo.pack("I", UNDO_BLOCK)
        self._rows = [form.records(redo) for _ in range(GROUP_ROWS)]
        self._markers: list[list[RedoRecord]] = []
        for record in range(GROUP_ROWS if form.savepoints else 0):
            redo.undo_insert(record, record + 1)
            self._markers.append([redo.records.pop()])

    def rows(self, first: int, count: int, number: int) -> None:
        """The rows from `first` on, with their undo in a block of this number."""
        for row in range(count):
            self._put(self._rows[row], first + row, number)

    def rollback(self, count: int, number: int) -> None:
        """Undo them, the newest first."""
        for row in range(count - 1, -1, -1):
            self._put(self._markers[row], 0, number)

    def _put(self, made: list[RedoRecord], row: int, number: int) -> None:
        own = cells.number(Decimal(key(row))).raw
        block = self._redo.redo.pack("I", UNDO_BLOCK + number)
        for record in made:
            body = record.body.replace(self._first, own).replace(self._block, block)
            body = body.replace(lob_id(FIRST_LOB), lob_id(FIRST_LOB + row))
            self._redo.scn += 1
            self._redo.records.append(replace(record, scn=self._redo.scn, body=body))

    def taken(self) -> LwnGroup:
        """What was made since the last."""
        records, self._redo.records = tuple(self._redo.records), []
        return LwnGroup(records, records[0].scn, TIME, records[-1].scn + 1)


def groups(
    redo: LobRedo, rows: int, form: RowForm, *, rollback: bool = False
) -> Iterator[LwnGroup]:
    """The transaction, LWN by LWN."""
    redo.begin()
    maker = GroupMaker(redo, form)
    stretch = -(-rows // SAVEPOINTS) if form.savepoints else rows
    for start in range(0, rows, stretch):
        end = min(start + stretch, rows)
        yield from _rows(maker, start, end)
        if form.savepoints:
            # IDs and undo blocks of their own.
            yield from _rows(maker, rows + start, rows + end)
            yield from _taken_back(maker, rows + start, rows + end)
    redo.end(rollback=rollback)
    yield maker.taken()


def _rows(maker: GroupMaker, start: int, end: int) -> Iterator[LwnGroup]:
    for first in range(start, end, GROUP_ROWS):
        maker.rows(first, min(GROUP_ROWS, end - first), first)
        yield maker.taken()


def _taken_back(maker: GroupMaker, start: int, end: int) -> Iterator[LwnGroup]:
    for first in reversed(range(start, end, GROUP_ROWS)):
        maker.rollback(min(GROUP_ROWS, end - first), first)
        yield maker.taken()


def write_logs(folder: Path, rows: int, form: RowForm, *, rollback: bool = False) -> int:
    """Write the logs; how many bytes they have."""
    redo = LobRedo(scn=FIRST_SCN)
    identity = LogIdentity(1, NAME, 1, 1, 1)
    log, sequence, total = OpenLog(redo.redo, identity, 1, FIRST_SCN, TIME), 1, 0

    def close() -> int:
        return (folder / f"large_1_{sequence}.arc").write_bytes(log.close(redo.scn + 1, TIME + 1))

    for group in groups(redo, rows, form, rollback=rollback):
        log.write(group)
        if log.blocks * redo.redo.block_size >= LOG_BYTES:
            total += close()
            sequence += 1
            log = OpenLog(redo.redo, identity, sequence, redo.scn + 1, TIME)
    return total + close()


def kind_of(process: psutil.Process, main: int) -> str:
    """What a process of the appliance is."""
    if process.pid == main:
        return "driver"
    return "java" if "java" in process.name() else "worker"


class Watch:
    """The highest of each figure."""

    def __init__(self) -> None:
        self.most = dict[str, int]()

    def note(self, name: str, value: int) -> None:
        self.most[name] = max(self.most.get(name, 0), value)

    def look(self, main: psutil.Process, data: Path, free: int) -> None:
        """At every process of the appliance, and at the disk."""
        for process in [main, *main.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                kind = kind_of(process, main.pid)
                for line in Path(f"/proc/{process.pid}/status").read_text("ascii").splitlines():
                    name, _, value = line.partition(":")
                    if name in ("VmRSS", "RssAnon"):
                        self.note(f"{kind}_{name.lower()}_mib", int(value.split()[0]) >> 10)
        self.note("disk_used_mib", free - shutil.disk_usage(data).free >> 20)


def replicate(config: Path, log: Path, data: Path) -> tuple[int, Watch, float]:
    """``olr-pg run --once``: its exit code, what was seen, and the seconds."""
    watch, began = Watch(), time.monotonic()
    free = shutil.disk_usage(data).free
    command = [sys.executable, "-m", "olr_pg", "run", "--once", "--config", str(config)]
    with log.open("wb") as file, subprocess.Popen(command, stderr=file) as process:
        main = psutil.Process(process.pid)
        while process.poll() is None:
            with suppress(psutil.NoSuchProcess):
                watch.look(main, data, free)
            time.sleep(LOOK_SECONDS)
    return process.returncode, watch, time.monotonic() - began


def write_config(folder: Path, database: str, max_mb: int, *, encrypted: bool) -> Path:
    """The configuration of the run."""
    secret = base64.b64encode(os.urandom(32)).decode()
    document = {
        "context": {
            "data": "data",
            "memory": {"min-mb": 64, "max-mb": max_mb},
            "encryption-key": secret if encrypted else None,
        },
        "source": {"kind": "offline", "dictionary": "dictionary.json", "logs": "logs"},
        "target": {"address": "127.0.0.1:0"},
        "apply": {
            "connect-string": database, "tables": [f"APP.{NAME}"], "create-tables": True
        },
    }  # fmt: skip
    path = folder / "config.json"
    path.write_text(json.dumps(document), "utf-8")
    return path


def run(
    folder: Path, gigabytes: float, max_mb: int, form: RowForm, *, encrypted: bool
) -> dict[str, Any]:
    """All of it; the figures."""
    rows = int(gigabytes * 1e9 / form.bytes_of_row)
    logs = folder / "logs"
    logs.mkdir()
    began = time.monotonic()
    redo_bytes = write_logs(logs, rows, form)
    written = time.monotonic() - began
    write_snapshot(form.snapshot(), str(folder / "dictionary.json"))
    cluster = start_embedded(folder / "postgres")
    try:
        config = write_config(folder, cluster.connect_string, max_mb, encrypted=encrypted)
        code, watch, seconds = replicate(config, folder / "run.log", folder)
        with psycopg.connect(cluster.connect_string) as connection:
            found = connection.execute(form.check.encode()).fetchone()
    finally:
        cluster.stop()
    return {
        "held": code == 0 and found == (rows, rows, sum(map(key, range(rows))), 1, rows),
        "exit_code": code,
        "rows": rows,
        "found": found,
        "redo_mb": redo_bytes // 1_000_000,
        "max_mb": max_mb,
        "encrypted": encrypted,
        "written_seconds": round(written, 1),
        "seconds": round(seconds, 1),
        **dict(sorted(watch.most.items())),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--max-mb", type=int, default=512)
    parser.add_argument("--text", type=int, default=TEXT_BYTES, help="bytes of a row's two texts")
    parser.add_argument("--lob", type=int, help="bytes of a BLOB, at most a page, instead")
    parser.add_argument("--basicfile", action="store_true", help="that is not a SECUREFILE")
    parser.add_argument("--savepoints", action="store_true", help="and as many rows undone")
    parser.add_argument("--encrypted", action="store_true", help="with a key for files")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="olr-pg-large-", dir=options.folder) as folder:
        form = RowForm(
            options.lob or options.text, options.lob is not None, options.basicfile,
            options.savepoints,
        )  # fmt: skip
        figures = run(
            Path(folder), options.gigabytes, options.max_mb, form, encrypted=options.encrypted
        )
        if not figures["held"]:
            sys.stderr.write((Path(folder) / "run.log").read_text("utf-8", "replace"))
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    sys.exit(0 if figures["held"] else 1)


if __name__ == "__main__":
    main()
