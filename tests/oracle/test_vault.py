"""Copies of archived logs in the vault."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.capture.logs import open_log
from olr_pg.capture.readers import same_content
from olr_pg.config.source_section import CommandTransport, Vault
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.sealed import RowKey, is_sealed, sealing
from olr_pg.oracle.archive import ListedLog
from olr_pg.oracle.vault import LogFetching, LogVault, fetch_copy
from tests.files.durable_writes import recorded
from tests.oracle.live_source import LiveSource
from tests.waiting import wait_until

if TYPE_CHECKING:
    from olr_pg.oracle.live_source import LiveDatabase


def test_the_vault_makes_one_copy_and_keeps_nothing_broken(
    live: LiveSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    writes = recorded(monkeypatch)
    for name in ("1_1_1_1.copying", ".1_1_1_1.copying.sealing"):
        (vault / name).write_bytes(b"left over")
    path = live.archive()
    with live.database(vault=vault) as database:
        (log,) = database.scan(0, 0).logs
    copy = Path(log.path)
    assert copy.parent == vault
    assert writes.keep(copy)
    assert list(vault.iterdir()) == [copy]
    assert copy.read_bytes() == path.read_bytes()[: log.used_bytes]
    changed = copy.stat().st_mtime_ns
    (live.mount / path.name).unlink()
    with live.database(vault=vault) as database:
        assert [found.path for found in database.scan(0, 0).logs] == [str(copy)]
    assert copy.stat().st_mtime_ns == changed


def test_with_a_key_the_copies_are_encrypted(live: LiveSource, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    path = live.archive()
    key = RowKey(bytes(range(32)))
    with sealing(key), live.database(vault=vault) as database:
        (log,) = database.scan(0, 0).logs
        assert is_sealed(log.path)
        assert log.header == open_log(str(path)).header
        assert same_content(log, open_log(str(path)))
        (live.mount / path.name).unlink()
        assert [one.path for one in database.scan(0, 0).logs] == [log.path]


def damaged(data: bytes, how: str) -> bytes:
    size = 512
    start = len(data) // size // 2 * size
    block = {
        "never written": bytes(size),
        "damaged": data[start : start + 100] + b"\xa5" + data[start + 101 : start + size],
        "of another place": data[start + size : start + 2 * size],
    }[how]
    return data[:start] + block + data[start + size :]


@pytest.mark.parametrize("how", ["never written", "damaged", "of another place"])
def test_a_damaged_log_is_not_kept_and_another_copy_of_it_is(
    live: LiveSource, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault, path = tmp_path / "vault", live.archive()
    here, good = live.mount / path.name, path.read_bytes()
    here.write_bytes(damaged(good, how))
    with live.database(vault=vault) as database:
        (problem,) = database.scan(0, 0).unusable
        assert (problem.code, problem.where["file"]) == (Code.BLOCK_CORRUPT, str(here))
        assert list(vault.iterdir()) == []
        here.write_bytes(good)
        assert database.scan(0, 0).unusable == (problem,)  # not read again at once
        monkeypatch.setattr("olr_pg.oracle.vault._DAMAGED_SECONDS", -1.0)
    with live.database(vault=vault) as database:
        here.write_bytes(damaged(good, how))
        assert database.scan(0, 0).unusable
        here.write_bytes(good)
        (log,) = database.scan(0, 0).logs  # read again, since its time has passed
        assert Path(log.path).read_bytes() == good[: log.used_bytes]
    Path(log.path).unlink()
    here.write_bytes(damaged(good, how))
    live.archived_twice(str(path))
    with live.database(vault=vault) as database:
        (log,) = database.scan(0, 0).logs
        assert Path(log.path).read_bytes() == good[: log.used_bytes]


def test_a_copy_that_was_damaged_later_is_replaced_and_hides_no_other(
    live: LiveSource, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    first, second = live.archive(), live.archive()
    with live.database(vault=vault) as database:
        copies = [Path(log.path) for log in database.scan(0, 0).logs]
    good = copies[0].read_bytes()
    (live.mount / second.name).unlink()
    copies[0].write_bytes(good[:1024])
    with live.database(vault=vault) as database:
        assert [Path(log.path) for log in database.scan(0, 0).logs] == copies
        assert copies[0].read_bytes() == good
    (live.mount / first.name).unlink()
    copies[0].write_bytes(good[:1024])
    with live.database(vault=vault) as database:
        scan = database.scan(0, 0)
        assert [Path(log.path) for log in scan.logs] == []  # they wait for the first
        copies[0].write_bytes(good)
        assert [Path(log.path) for log in database.scan(0, 0).logs] == copies


def test_a_vault_whose_mount_is_gone_gets_no_copies(live: LiveSource, tmp_path: Path) -> None:
    """They would be hidden by the mount later, although the originals may be deleted."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs a second file system")
    vault, bare = tmp_path / "vault", tmp_path / "bare"
    mounted = Path(tempfile.mkdtemp(dir=memory))
    bare.mkdir()
    vault.symlink_to(mounted)
    try:
        live.archive()
        with live.database(vault=vault) as database:
            assert len(database.scan(0, 0).logs) == 1
            vault.unlink()
            vault.symlink_to(bare)
            live.archive()
            scan = database.scan(0, 0)
            assert {error.code for error in scan.unusable} == {Code.VAULT_UNUSABLE}
            assert list(bare.iterdir()) == []
            vault.unlink()
            vault.symlink_to(mounted)
            scan = database.scan(0, 0)
            assert (len(scan.logs), scan.unusable) == (2, ())
    finally:
        shutil.rmtree(mounted)


def test_a_vault_that_cannot_be_written(live: LiveSource, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OlrPgError) as caught, live.database(vault=tmp_path / "file" / "vault"):
        pass
    assert caught.value.code == 7030


def test_a_copy_that_the_vault_has_no_room_for_takes_none(live: LiveSource, tmp_path: Path) -> None:
    """The next try needs the room, and so does the checkpoint where it is on the same disk."""
    vault = tmp_path / "vault"
    path = live.archive()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with live.database(vault=vault) as database:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size // 2, hard))
        try:
            scan = database.scan(0, 0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert [error.code for error in scan.unusable] == [7030]
        assert list(vault.iterdir()) == []
        assert len(database.scan(0, 0).logs) == 1


@pytest.mark.parametrize("fetched", [False, True], ids=["mounted", "fetched"])
def test_later_logs_do_not_take_the_room_that_a_log_waits_for(
    live: LiveSource, tmp_path: Path, fetched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault, transport = tmp_path / "vault", None
    writes = recorded(monkeypatch)
    if fetched:
        command = ["sh", "-c", f'cat "{live.mount}/$(basename "$1")"', "fetch", "{name}"]
        section = {"kind": "command", "command": command}
        transport = CommandTransport.model_validate(section)
    live.archive_all()
    first, *later = sorted(live.mount.iterdir())
    size = first.stat().st_size
    assert min(path.stat().st_size for path in later) < size
    changes: dict[str, Any] = {"path-mapping": []} if fetched else {}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with live.database(changes, vault=vault, transport=transport) as database:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size - 1_000, hard))
        try:
            wait_until(lambda: Code.VAULT_UNUSABLE in codes(database))
            here = {path.suffix for path in vault.iterdir()}
            for _ in range(5):
                assert set(codes(database)) <= {Code.VAULT_UNUSABLE, Code.LOG_ON_ITS_WAY}
            # Only what was on its way already has come.
            assert len(list(vault.glob("*.arc"))) <= (1 if fetched else 0), here
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        wait_until(lambda: len(database.scan(0, 0).logs) == 1 + len(later))
    assert all(map(writes.keep, vault.glob("*.arc")))


def codes(database: LiveDatabase) -> list[Code]:
    return [error.code for error in database.scan(0, 0).unusable]


def test_a_vault_in_the_archive_destination_leaves_oracle_s_own_logs_alone(
    live: LiveSource, tmp_path: Path
) -> None:
    confirmed: list[int | None] = [None]
    section = Vault.model_validate({"directory": str(live.mount), "keep-hours": 0})
    live.archive_all()
    own = sorted(live.mount.iterdir())
    # As LOG_ARCHIVE_FORMAT=%t_%s_%r.arc has it.
    own = [path.rename(path.with_name(f"1_{at}_1218700800.arc")) for at, path in enumerate(own)]
    (live.mount / "restored.copying").touch()
    vault = LogVault(section, lambda: confirmed[0])
    assert vault.logs() == ([], True)
    confirmed[0] = end = max(open_log(str(path)).next_scn for path in own)
    vault.remove_confirmed(end)
    assert sorted(live.mount.iterdir()) == [*own, live.mount / "restored.copying"]


def test_a_clock_that_jumps_ahead_makes_no_copy_old(
    live: LiveSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is corrected later, but a removed copy is lost."""
    folder = tmp_path / "vault"
    live.archive()
    with live.database(vault=folder) as database:
        (log,) = database.scan(0, 0).logs
    end = log.next_scn
    section = Vault.model_validate({"directory": str(folder), "keep-hours": 1})
    vault, real = LogVault(section, lambda: end), time.time
    monkeypatch.setattr(time, "time", lambda: real() + 20 * 365 * 86_400)
    vault.remove_confirmed(end)
    assert Path(log.path).exists()
    os.utime(log.path, (0, 0))
    vault.remove_confirmed(end)
    assert not Path(log.path).exists()


def listed(thread: int, sequence: int) -> ListedLog:
    return ListedLog(1, thread, sequence, 1, 2, 1, f"{thread}_{sequence}", "")


class Transport:
    """Brings a log when it is let to, or fails."""

    def __init__(self) -> None:
        self.let = threading.Event()
        self.fails = False
        self.begun: list[str] = []

    def fetch(self, one: ListedLog, into: Path) -> None:
        self.begun.append(one.name)
        assert self.let.wait(60)
        if self.fails:
            raise OlrPgError(Code.LOG_NOT_BROUGHT, "the line is down")
        into.write_text(one.name)

    def close(self) -> None:
        self.fails = True
        self.let.set()


def code_of(fetching: LogFetching, one: ListedLog, folder: Path) -> Code | None:
    try:
        fetching.fetch([one], folder / one.name)
    except OlrPgError as error:
        return error.code
    return None


def until_over(fetching: LogFetching, one: ListedLog, folder: Path) -> Code | None:
    """What comes of a fetch that is on its way."""
    while (code := code_of(fetching, one, folder)) == Code.LOG_ON_ITS_WAY:
        threading.Event().wait(0.001)
    return code


def check_nothing(_listed: ListedLog, _file: Path) -> None:
    """Any file is a log."""


def test_no_thread_takes_all_places_and_a_failure_is_told_while_it_is_tried_again(
    tmp_path: Path,
) -> None:
    transport = Transport()
    fetching = LogFetching(transport, check_nothing)
    wanted = [listed(thread, sequence) for thread in (1, 2) for sequence in (5, 6, 7)]
    codes = [code_of(fetching, one, tmp_path) for one in wanted]
    assert codes == [Code.LOG_ON_ITS_WAY] * 6
    transport.fails = True
    transport.let.set()
    assert until_over(fetching, wanted[0], tmp_path) == Code.LOG_NOT_BROUGHT
    assert sorted(transport.begun) == ["1_5", "1_6", "2_5", "2_6"]
    transport.let.clear()
    again = [code_of(fetching, wanted[0], tmp_path) for _ in range(2)]
    assert set(again) == {Code.LOG_ON_ITS_WAY, Code.LOG_NOT_BROUGHT} or set(again) == {
        Code.LOG_NOT_BROUGHT
    }
    assert not fetching.take_arrival()  # only failures: the next look is no sooner
    transport.fails = False
    transport.let.set()
    while code_of(fetching, wanted[0], tmp_path) is not None:
        threading.Event().wait(0.001)
    assert (tmp_path / "1_5").read_text() == "1_5"
    assert fetching.take_arrival()
    assert not fetching.take_arrival()
    fetching.close()


def test_a_log_is_fetched_from_the_first_copy_that_is_whole(tmp_path: Path) -> None:
    copies = [listed(1, 5)._replace(destination=at, name=f"{at}") for at in (1, 2, 3)]
    file, tried = tmp_path / "log", list[str]()

    class Copies:
        def fetch(self, one: ListedLog, into: Path) -> None:
            assert one.name in {"1", "2"} or not into.exists()
            tried.append(one.name)
            if one.name == "1":
                raise OlrPgError(Code.LOG_DIRECTORY_UNREADABLE, "no directory object")
            if one.name == full:
                raise OlrPgError(Code.VAULT_UNUSABLE, "no space left")
            into.write_text(one.name)

        def close(self) -> None:
            """Nothing is open."""

    def check(one: ListedLog, into: Path) -> None:
        assert into.read_text() == one.name
        if one.name == damaged:
            raise OlrPgError(Code.BLOCK_CORRUPT, "the checksum is wrong")

    damaged, full = "2", ""
    fetch_copy(Copies(), copies, file, check)
    assert (file.read_text(), tried) == ("3", ["1", "2", "3"])
    file.unlink()
    with pytest.raises(OlrPgError) as caught:
        fetch_copy(Copies(), copies[:2], file, check)
    assert (caught.value.code, file.exists()) == (Code.LOG_DIRECTORY_UNREADABLE, False)
    tried.clear()
    damaged, full = "", "2"
    with pytest.raises(OlrPgError) as caught:
        fetch_copy(Copies(), copies, file, check)
    assert (caught.value.code, tried) == (Code.VAULT_UNUSABLE, ["1", "2"])


def test_what_is_no_whole_log_is_not_gone_on_with(tmp_path: Path) -> None:
    transport = Transport()
    transport.let.set()

    def refuse(_listed: ListedLog, file: Path) -> None:
        assert file.exists()
        raise OlrPgError(Code.BLOCK_CORRUPT, "the checksum is wrong")

    fetching = LogFetching(transport, refuse)
    assert until_over(fetching, listed(1, 5), tmp_path) == Code.BLOCK_CORRUPT
    assert not (tmp_path / "1_5").exists()
    fetching.close()


def test_closing_gives_up_what_is_on_its_way(tmp_path: Path) -> None:
    transport = Transport()
    fetching = LogFetching(transport, check_nothing)
    assert code_of(fetching, listed(1, 5), tmp_path) == Code.LOG_ON_ITS_WAY
    fetching.close()
    with pytest.raises(RuntimeError):
        fetching.fetch([listed(1, 6)], tmp_path / "1_6")


@pytest.mark.parametrize("fails", [False, True])
def test_what_comes_and_nobody_asks_for_any_more_takes_no_place(
    tmp_path: Path, fails: bool
) -> None:
    """Its redo was read online meanwhile: two such logs would keep all others from coming."""
    transport = Transport()
    fetching = LogFetching(transport, check_nothing)
    old, wanted = [listed(1, 5), listed(1, 6)], listed(1, 7)
    for one in (*old, wanted):
        assert code_of(fetching, one, tmp_path) == Code.LOG_ON_ITS_WAY
    transport.fails = fails
    fetching.drop_unwanted({wanted.stream_position})
    transport.let.set()
    code: Code | None = Code.LOG_ON_ITS_WAY
    while code == Code.LOG_ON_ITS_WAY:
        fetching.drop_unwanted({wanted.stream_position})
        code = code_of(fetching, wanted, tmp_path)
        threading.Event().wait(0.001)
    assert code == (Code.LOG_NOT_BROUGHT if fails else None)
    fetching.close()
    assert (tmp_path / wanted.name).exists() != fails
