"""Copies of archived logs in the vault."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from olr_pg.capture.logs import open_log
from olr_pg.capture.readers import same_content
from olr_pg.config.source_section import Vault
from olr_pg.errors import OlrPgError
from olr_pg.files.sealed import RowKey, is_sealed, sealing
from olr_pg.oracle.vault import LogVault
from tests.oracle.live_source import LiveSource


def test_the_vault_makes_one_copy_and_keeps_nothing_broken(
    live: LiveSource, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "1_1_1_1.copying").write_bytes(b"left over")
    path = live.archive()
    with live.database(vault=vault) as database:
        (log,) = database.scan(0, 0).logs
    copy = Path(log.path)
    assert copy.parent == vault
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
    assert vault.logs() == []
    confirmed[0] = end = max(open_log(str(path)).next_scn for path in own)
    vault.remove_confirmed(end)
    assert sorted(live.mount.iterdir()) == [*own, live.mount / "restored.copying"]
