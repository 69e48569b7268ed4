"""Damaged files in `context.data`: the error names the file, says in plain words what is wrong with
it, and what to do. No message of a parser or of Python reaches the operator.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from olr_pg.appliance import container_names, created_tables, encryption
from olr_pg.applier.target.applied_file import AppliedTables
from olr_pg.capture import lineage, redo_threads
from olr_pg.config import changed_tables
from olr_pg.dictionary import change_history
from olr_pg.errors import OlrPgError
from olr_pg.monitor.proofs import read_proofs
from olr_pg.replicator.recovery.image_files import read_image
from olr_pg.server import checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READERS: Final[dict[str, tuple[int, Callable[[Path], object]]]] = {
    checkpoint.FILE_NAME: (4011, lambda path: checkpoint.Checkpoint(path, "SIM/0/1")),
    redo_threads.FILE_NAME: (4036, redo_threads.KnownThreads),
    lineage.FILE_NAME: (4036, lineage.Lineage),
    encryption.FILE_NAME: (4036, encryption._known),
    created_tables.FILE_NAME: (4036, created_tables.CreatedTables),
    changed_tables.FILE_NAME: (4036, changed_tables.read_table_changes),
    container_names.FILE_NAME: (1171, container_names._read),
    change_history.FILE_NAME: (
        3075,
        lambda path: change_history.DictionaryHistory(path, "SIM", 1),
    ),
    "1.image": (2071, lambda path: read_image(path, "SIM/0/1")),
}
"""The reader of each file, and the code of its error."""

WITHOUT: Final[dict[str, Callable[[Path], object]]] = {
    "applied.json": lambda path: AppliedTables("olr_pg", path).read_file(),
    "verified.json": read_proofs,
}
"""The readers that warn, and continue as if the file were missing."""

DAMAGE: Final = {
    "empty": b"",
    "zeros": bytes(512),
    "truncated": b'{"version": 1, "thr',
    "garbage": b"\xff\xfe\x00garbage",
    "nested": b"[" * 100_000,
    "null": b"null",
    "list": b"[]",
    "number": b"3",
    "text": b'"x"',
    "list in a list": b"[[]]",
    "wrong version": b'{"version": "x"}',
    "wrong values": b'{"version": 1, "threads": [null], "added": [1], "schemas": 3, "key": {}[}',
    "wrong types": b'{"version": 1, "threads": null, "added": {}, "removed": 3, "schemas": []}',
}

PARSERS: Final = re.compile(
    r"Expecting|char \d|codec|Input should|Field required|object has no|not iterable|argument|"
    r"literal|indices|subscriptable|column \d|EOF|JSON|recursion|validation error"
)


@pytest.mark.parametrize("kind", DAMAGE)
def test_an_operator_can_act_on_it(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # A history of the dictionary ends at its last whole line, so each line here is whole.
    for name, (code, read) in READERS.items():
        path = tmp_path / name
        data = DAMAGE[kind]
        path.write_bytes(data + b"\n" if name == change_history.FILE_NAME else data)
        with pytest.raises(OlrPgError) as caught:
            read(path)
        assert caught.value.code == code, name
        text = f"{caught.value} {caught.value.action}"
        assert str(path) in text
        assert not PARSERS.search(text), text
        assert "restore the file from a backup" in text or code in (2071, 3075, 1171), text
    for name, read in WITHOUT.items():
        path = tmp_path / name
        path.write_bytes(DAMAGE[kind])
        read(path)
        said = capsys.readouterr()
        assert name in said.out + said.err or (name, kind) == ("verified.json", "list"), name
        assert not PARSERS.search(said.out + said.err), said


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bytes(9), "the file is empty"),
        (b'{"thr', "the file is truncated"),
        (b'{"threads": 3}', "a key is missing or has a wrong value"),
    ],
)
def test_the_kind_of_damage_is_named(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / redo_threads.FILE_NAME
    path.write_bytes(data)
    with pytest.raises(OlrPgError, match=reason) as caught:
        redo_threads.KnownThreads(path)
    assert "OLR-02014" in caught.value.action
