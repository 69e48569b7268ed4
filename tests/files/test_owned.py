"""Every place that writes, replaces, closes or removes a file leaves alone what is not its own.

What holds rows is closed to other users, whatever the umask, and also what was left open.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from olr_pg.appliance import container_names, created_tables, data_lock, encryption
from olr_pg.appliance.data_lock import hold_data_lock
from olr_pg.appliance.dictionary_export import container_files
from olr_pg.appliance.open_source import DICTIONARY
from olr_pg.applier.target import applied_file
from olr_pg.bench.measure import write_page
from olr_pg.capture import lineage, redo_threads
from olr_pg.cli.init import init
from olr_pg.config import changed_tables
from olr_pg.dictionary import change_history
from olr_pg.dictionary.change_history import DictionaryHistory
from olr_pg.dictionary.snapshot_file import write_whole
from olr_pg.errors import OlrPgError
from olr_pg.files.durable import replace_file
from olr_pg.files.owned import (
    check_writable,
    close_to_others,
    close_tree_to_others,
    make_private_directory,
    open_plain,
    remove_plain,
    set_mode,
    written_whole,
)
from olr_pg.load.verification import continuous, differences
from olr_pg.monitor import history, proofs, service
from olr_pg.monitor.history import HistoryStore
from olr_pg.oracle.source_containers import begun_file
from olr_pg.schema.statement import Statement, write_files
from olr_pg.server import checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


STRANGER = 65533
KINDS = ["device", "full device", "pipe", "socket", "directory", "link", "dangling link", "foreign"]
REFUSED = r"the (path|file) (is|belongs)|Too many levels|No such|Permission"


class Seen(NamedTuple):
    """What must stay as it is."""

    mode: int
    owner: int
    device: int
    content: bytes | None


def _seen(path: Path) -> Seen:
    status = path.lstat()
    content = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
    if stat.S_ISDIR(status.st_mode):
        content = repr(sorted(one.name for one in path.iterdir())).encode()
    if stat.S_ISLNK(status.st_mode):
        content = str(path.readlink()).encode()
    return Seen(status.st_mode, status.st_uid, status.st_rdev, content)


def _names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


class Obstacle:
    """Something at a path that is no file of ours; it and what it leads to must stay."""

    def __init__(self, kind: str, path: Path, outside: Path) -> None:
        outside.mkdir(exist_ok=True)
        self.path = path
        self._target = outside / "of somebody"
        self._target.write_bytes(b"theirs")
        self._target.chmod(0o644)
        if kind.endswith("device"):
            # Nodes of our own, never those of the machine.
            number = os.makedev(1, 7 if kind == "full device" else 3)
            try:
                os.mknod(path, 0o666 | stat.S_IFCHR, number)
            except PermissionError:
                pytest.skip("only root makes devices")
            path.chmod(0o666)
        elif kind == "pipe":
            os.mkfifo(path, 0o666)
        elif kind == "socket":
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(str(path))
        elif kind == "directory":
            path.mkdir(mode=0o755)
            (path / "theirs").write_text("x")
        elif kind == "link":
            path.symlink_to(self._target)
        elif kind == "dangling link":
            path.symlink_to(outside / "nowhere")
        else:
            path.write_bytes(b"theirs")
            path.chmod(0o644)
            try:
                os.chown(path, STRANGER, STRANGER)
            except PermissionError:
                pytest.skip("only root gives files away")
        self._outside = outside
        self._before = self._look()

    def _look(self) -> list[Seen]:
        return [_seen(one) for one in (self.path, self._target, self._outside)]

    def check(self) -> None:
        assert self._look() == self._before


@pytest.fixture(autouse=True)
def short_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket's path has a limit of its own."""
    monkeypatch.chdir(tmp_path)


def _init(path: Path) -> None:
    init(
        out=path,
        server=None,
        user=None,
        path_mapping=None,
        logs=["logs"],
        dictionary="d.json",
        container=None,
        target="embedded",
        table=["S.*"],
        force=True,
    )


def _history(path: Path) -> None:
    history = HistoryStore(path)
    history.add(1.0, "olr_pg", {})
    history.close()


STATEMENTS = [Statement("table", "S.T", "CREATE TABLE s.t ()")]
NAMED: dict[str, Callable[[Path], object]] = {
    "verify --differences": lambda path: differences.write_differences(path, [{"a": 1}]),
    "verify --differences, before": differences.check_writable,
    "dictionary export --out": lambda path: write_whole(b"{}", str(path)),
    "init --out": _init,
    "bench --page": lambda path: write_page(path, [], "olr-pg bench"),
    "a file by its name": lambda path: _write(path),
    "whether a file can be written": check_writable,
}
"""Places that write to a path which a user names."""
OURS: dict[str, Callable[[Path], object]] = {
    "checkpoint and the like": lambda path: replace_file(path, b"ours"),
    "files that grow": lambda path: _append(path),
    "files that are removed": remove_plain,
    "the lock": lambda path: _lock(path),
    "the history": _history,
    "changes of the dictionary": lambda path: DictionaryHistory(path, "db", 1),
}
"""Places that write into a directory of ours, in which somebody else may have put something."""


def _write(path: Path) -> None:
    with written_whole(path, 0o600) as file:
        file.write(b"ours")


def _append(path: Path) -> None:
    with open_plain(path, "ab") as file:
        file.write(b"ours")


def _lock(path: Path) -> None:
    with hold_data_lock(path.parent):
        pass


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", NAMED)
def test_a_path_that_is_no_file_of_ours_is_refused_and_stays(
    tmp_path: Path, place: str, kind: str
) -> None:
    obstacle = Obstacle(kind, tmp_path / "named", tmp_path / "outside")
    before = _names(tmp_path)
    with pytest.raises((OSError, OlrPgError)):
        NAMED[place](obstacle.path)
    obstacle.check()
    assert _names(tmp_path) == before


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "foreign"])
@pytest.mark.parametrize("place", OURS)
def test_what_is_put_into_our_directory_leads_nowhere(
    tmp_path: Path, place: str, kind: str
) -> None:
    name = "lock" if place == "the lock" else "ours"
    obstacle = Obstacle(kind, tmp_path / name, tmp_path / "outside")
    with suppress(OSError, OlrPgError):
        OURS[place](obstacle.path)
    obstacle.check()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "directory"])
def test_a_folder_that_is_written_to_keeps_what_is_not_ours(tmp_path: Path, kind: str) -> None:
    """schema --out: the file of a kind, and one of another name that looks like ours."""
    folder = tmp_path / "out"
    folder.mkdir()
    mine = folder / "01-mine.sql"
    mine.write_text("SELECT 1")
    obstacle = Obstacle(kind, folder / "03-table.sql", tmp_path / "outside")
    with pytest.raises(
        OSError,
        match=REFUSED,
    ):
        write_files(STATEMENTS, folder)
    obstacle.check()
    assert mine.read_text() == "SELECT 1"
    obstacle.path.unlink()
    write_files(STATEMENTS, folder)
    write_files([Statement("index", "S.I", "CREATE INDEX ON s.t (a)")], folder)
    assert _names(folder) == ["01-mine.sql", "11-index.sql", "all.sql"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_data_directory_is_closed_and_nothing_else(tmp_path: Path, kind: str) -> None:
    data = tmp_path / "data"
    (data / "spill").mkdir(parents=True)
    (data / "spill" / "rows").write_text("rows")
    (data / "spill" / "rows").chmod(0o644)
    obstacle = Obstacle(kind, data / "spill" / "x", tmp_path / "outside")
    loose = [*close_to_others(data), *close_tree_to_others(data / "spill")]
    if kind != "directory":  # which is made ours, with all that is in it
        obstacle.check()
    assert stat.S_IMODE((data / "spill" / "rows").stat().st_mode) == 0o600
    if kind in {"device", "full device", "foreign"}:
        assert obstacle.path in loose


def test_a_file_of_ours_is_replaced_with_rights_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "differences"
    path.write_text("before")
    path.chmod(0o644)
    other = tmp_path / "the same file by another name"
    os.link(path, other)
    differences.write_differences(path, [{"a": 1}])
    assert json.loads(path.read_bytes()) == {"a": 1}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert other.read_text() == "before"
    assert stat.S_IMODE(other.stat().st_mode) == 0o644
    assert _names(tmp_path) == sorted([path.name, other.name])


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("before")

    def lines() -> Iterator[dict[str, Any]]:
        yield {"a": 1}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        differences.write_differences(path, lines())
    assert path.read_text() == "before"
    assert _names(tmp_path) == ["f"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    ended = threading.Event()

    def work() -> None:
        for place in (*NAMED.values(), *OURS.values()):
            with suppress(OSError, OlrPgError):
                place(path)
        ended.set()

    threading.Thread(target=work, daemon=True).start()
    assert ended.wait(60)


@pytest.mark.parametrize("kind", KINDS)
def test_rights_are_set_by_the_descriptor_of_what_is_ours(tmp_path: Path, kind: str) -> None:
    obstacle = Obstacle(kind, tmp_path / "x", tmp_path / "outside")
    if kind == "directory":
        set_mode(obstacle.path, 0o700)
        assert stat.S_IMODE(obstacle.path.stat().st_mode) == 0o700
        return
    with pytest.raises(
        OSError,
        match=REFUSED,
    ):
        set_mode(obstacle.path, 0o600)
    obstacle.check()


ENTRY = "import os; os.umask(0); from olr_pg.cli.entry import run; run()"


def open_to_others(top: Path) -> list[str]:
    """Everything below a directory that others may read, write or list, but for PostgreSQL's."""
    found = list[str]()
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name != "postgres"]
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:
                continue
            # Others may go through a data directory to the embedded PostgreSQL, but not look.
            if stat.S_IMODE(mode) & (0o066 if path == top else 0o077) and not path.is_symlink():
                found.append(f"{path} {stat.filemode(mode)}")
    return found


def test_a_run_leaves_nothing_open_whatever_the_umask(tmp_path: Path, real_log_dir: Path) -> None:
    data, temporary = tmp_path / "data", tmp_path / "temporary"
    temporary.mkdir(mode=0o700)
    make_private_directory(data)
    left = data / "spill" / "left"
    left.parent.mkdir(mode=0o755)
    left.write_text("rows")
    left.chmod(0o644)
    document = {
        "context": {"data": str(data)},
        "source": {
            "kind": "offline",
            "dictionary": str(real_log_dir / "TEST-chkpt-2266634.json"),
            "logs": str(real_log_dir / "*.dbf"),
        },
        "target": {"address": ":0"},
        "apply": {
            "connect-string": "embedded",
            "tables": ["OLR_TEST.TEST_CDC"],
            "create-tables": True,
        },
        "status": {"address": ":0"},
    }
    config = tmp_path / "c.json"
    config.write_text(json.dumps(document))
    seen = set[str]()
    with subprocess.Popen(
        [sys.executable, "-c", ENTRY, "run", "--once", "--config", str(config)],
        env={**os.environ, "TMPDIR": str(temporary)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = list[str]()
        for line in process.stderr:
            said.append(line)
            if "status page" in line or "decoded" in line or "applied" in line:
                seen.update(open_to_others(data), open_to_others(temporary))
    assert process.returncode == 0, "".join(said)
    seen.update(open_to_others(data), open_to_others(temporary))
    assert seen == set()
    assert (data / "checkpoint.json").exists()


def test_what_is_open_is_closed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name in ("incidents/a.bin", "targets/one/ready/1", "recovery/2", "status.json"):
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("rows")
    for folder, _, files in os.walk(data):
        Path(folder).chmod(0o755)
        for name in files:
            Path(folder, name).chmod(0o664)

    assert close_to_others(data) == []
    assert open_to_others(data) == []
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


DICTIONARIES = container_files(Path(DICTIONARY), ("PDB1", "X.Y"))


@pytest.mark.parametrize(
    "name",
    [
        *(applied_file.FILE_NAME, change_history.FILE_NAME, changed_tables.FILE_NAME),
        *(checkpoint.FILE_NAME, container_names.FILE_NAME, continuous.WALKS),
        *(created_tables.FILE_NAME, data_lock.FILE_NAME, data_lock._VERIFICATION_NAME),
        *(encryption.FILE_NAME, history.FILE_NAME, lineage.FILE_NAME, proofs.FILE_NAME),
        *(redo_threads.FILE_NAME, service.FILE_NAME),
        *(str(begun_file(one, 7)) for one in (Path(DICTIONARY), *DICTIONARIES)),
        *map(str, (DICTIONARY, *DICTIONARIES)),
    ],
)
def test_each_file_of_an_appliance_is_known_as_its_own(tmp_path: Path, name: str) -> None:
    """With a file of somebody else, the directory would stay open."""
    tmp_path.chmod(0o755)
    for path in (tmp_path / name, tmp_path / f"{name}.new"):
        path.write_text("rows")
        path.chmod(0o644)
    assert close_to_others(tmp_path) == []
    assert open_to_others(tmp_path) == []


def test_a_directory_that_holds_other_things_is_told_and_not_changed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    other = tmp_path / "somebody's.txt"
    other.write_text("words")
    other.chmod(0o644)
    (tmp_path / "checkpoint.json").write_text("{}")

    assert close_to_others(tmp_path) == [tmp_path]
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert stat.S_IMODE(other.stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "checkpoint.json").stat().st_mode) == 0o600


def test_a_place_for_everybody_is_told_and_not_changed(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)

    assert close_tree_to_others(tmp_path) == [tmp_path]
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    elsewhere.chmod(0o755)
    data = tmp_path / "data"
    make_private_directory(data)
    (data / "spill").symlink_to(elsewhere)

    assert close_to_others(data) == []
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o755


def test_others_can_pass_through_a_passable_directory_to_each_target_and_list_nothing(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    target = data / "targets" / "one"
    make_private_directory(target, passable=True)
    moved = data / "targets" / "moved"
    moved.mkdir(mode=0o755)
    (moved / "checkpoint.json").write_text("{}")
    (data / "spill").mkdir(mode=0o755)

    assert close_to_others(data, passable=True) == []

    folders = (data, data / "targets", target, moved)
    assert {stat.S_IMODE(one.stat().st_mode) for one in folders} == {0o711}
    assert stat.S_IMODE((moved / "checkpoint.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((data / "spill").stat().st_mode) == 0o700
