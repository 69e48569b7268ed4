"""Encrypts the files with rows in `context.data` and in the vault: checks the key, and starts
encryption.

``encryption.json`` in `context.data` records that the directory is encrypted, and the fingerprint
of the key. So a wrong or missing key is already an error when the appliance starts, and not only
when a file is read.

If a key is configured for an unencrypted directory, the files that a restart needs are encrypted in
place, and other unencrypted files are deleted. Encryption cannot be switched off, so that rows are
not written unencrypted if someone forgets the option.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson
import structlog

from olr_pg.capture.log_tail import TAIL_SUFFIX
from olr_pg.capture.online_logs import FOLDER as ONLINE
from olr_pg.config.source_section import OracleSource
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import damaged, unusable, write_state
from olr_pg.files.sealed import RowKey, is_sealed, seal_file, sealing
from olr_pg.files.system_errors import advice
from olr_pg.oracle.vault import COPIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.config.model import Config

FILE_NAME: Final = "encryption.json"
_VERSION: Final = 1
_COMMAND_SECONDS: Final = 60.0

_KEPT: Final = ("recovery/*.redo", "targets/*/recovery/*.redo", "incidents/*.incident.json")
_NOT_READ_AGAIN: Final = (f"{ONLINE}/*{TAIL_SUFFIX}", "ready/*.ready", "targets/*/ready/*.ready")

_IF_DAMAGED: Final = (
    "restore the file from a backup. Without a backup, delete it only if the configuration has the"
    " key with which the directory was encrypted, because a start without the file accepts any key"
)

_log = structlog.get_logger(__name__)


def row_key(config: Config) -> RowKey | None:
    """Return the configured key; None if files are not encrypted.

    Raises:
        OlrPgError: 1190, the key cannot be read or is invalid.
    """
    context = config.context
    try:
        if context.encryption_key is not None:
            return RowKey.of_text(context.encryption_key.get_secret_value())
        if context.encryption_key_command is not None:
            return RowKey.of_text(_printed(context.encryption_key_command))
    except ValueError as error:
        raise OlrPgError(Code.ENCRYPTION_KEY_UNUSABLE, str(error)) from None
    return None


def _printed(command: list[str]) -> str:
    """Run the command that prints the key. An error never contains the command's output."""
    try:
        ended = subprocess.run(  # noqa: S603 - the operator's own
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = f"the command did not end within {_COMMAND_SECONDS:g} s"
    except OSError as error:
        reason = f"the command cannot be run: {plain_reason(error)}"
    else:
        if ended.returncode == 0:
            return ended.stdout.decode("ascii", "replace")
        said = ended.stderr.decode("utf-8", "replace").strip()
        reason = (
            f"the command ended with exit code {ended.returncode}: {said or 'it printed nothing'}"
        )
    raise OlrPgError(Code.ENCRYPTION_KEY_UNUSABLE, reason, command=command[0])


def check_key(config: Config, data: Path) -> RowKey | None:
    """Return the configured key, after checking that it is the key of the directory.

    Raises:
        OlrPgError: 1190 the key cannot be read, 1191 it differs from the key of the directory, 1192
            the directory is encrypted and no key is configured.
    """
    key = row_key(config)
    known = _known(data / FILE_NAME)
    if key is None and known is not None:
        raise OlrPgError(
            Code.ENCRYPTION_KEY_MISSING, f"the directory contains {FILE_NAME}", path=str(data)
        )
    if key is not None and known not in (None, key.fingerprint.hex()):
        raise OlrPgError(
            Code.ENCRYPTION_KEY_WRONG,
            "the fingerprint of the configured key differs from the recorded one",
            path=str(data),
        )
    return key


@contextmanager
def encrypted_files(config: Config, data: Path) -> Iterator[None]:
    """Encrypt files with rows while the context is active, if a key is configured.

    Args:
        data: the directory `context.data`, whose lock is held.

    Raises:
        OlrPgError: 1190 to 1192 see `check_key`, 1193 existing files cannot be encrypted, 1092 the
            directory cannot be written.
    """
    key = check_key(config, data)
    if key is None:
        yield
        return
    with sealing(key):
        _encrypt_what_is_there(config, data)
        if not (data / FILE_NAME).exists():
            content = {"version": _VERSION, "key": key.fingerprint.hex()}
            write_state(data / FILE_NAME, json.dumps(content).encode() + b"\n")
        yield


def _known(path: Path) -> str | None:
    """Return the fingerprint of the directory's key; None if it is not encrypted."""
    try:
        data = path.read_bytes()
    # If the path is not a directory, other checks report this.
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unusable(path, error) from error
    try:
        return str(orjson.loads(data)["key"])
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(path, data, _IF_DAMAGED) from error


def _encrypt_what_is_there(config: Config, data: Path) -> None:
    """Encrypt existing files with rows that a restart may need, and delete the others."""
    kept = [path for pattern in _KEPT for path in data.glob(pattern)]
    if isinstance(config.source, OracleSource) and config.source.vault is not None:
        kept += Path(config.source.vault.directory).glob(COPIES)
    plain = 0
    for path in kept:
        try:
            if not is_sealed(path):
                seal_file(path)
                plain += 1
        except OSError as error:
            code, action = Code.ENCRYPTION_FAILED, advice(error)
            raise OlrPgError(code, plain_reason(error), action=action, file=str(path)) from error
    for pattern in _NOT_READ_AGAIN:
        for path in data.glob(pattern):
            path.unlink(missing_ok=True)
    if plain:
        _log.info(
            "existing files with rows are now encrypted",
            files=plain,
            directory=str(data),
        )
