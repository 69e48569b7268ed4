"""Reads a dictionary from a file in any of the supported formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.dictionary.containers import join_containers
from olr_pg.dictionary.schema_checkpoint import is_schema_checkpoint, parse_schema_checkpoint
from olr_pg.dictionary.snapshot_file import (
    FORMAT,
    parse_object,
    parse_snapshot,
    read_bytes,
    too_large,
)
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.dictionary.model import Snapshot

_KEYS_SHOWN = 5


def load_dictionary(paths: Iterable[str]) -> Snapshot:
    """Load the dictionary of one container or of several containers, with one file for each
    container.

    Raises:
        OlrPgError: as for `load_snapshot`; 3020, 3021, the containers do not belong together.
    """
    return join_containers([load_snapshot(path) for path in paths])


def load_snapshot(path: str) -> Snapshot:
    """Load the dictionary in the file at `path`: our own format, or a schema checkpoint.

    The format is detected from the content, not from the name.

    Raises:
        OlrPgError: 3001 unreadable, 3002 not JSON, 3003 an unknown format, 3004 a key is missing or
            wrong, 3005 contradictions, 3006 a checkpoint without its schema.
    """
    try:
        return _load(path)
    except MemoryError as error:
        raise too_large(path) from error


def _load(path: str) -> Snapshot:
    document = parse_object(read_bytes(path), path)
    if "format" in document:
        return parse_snapshot(document, path)
    if is_schema_checkpoint(document):
        return parse_schema_checkpoint(document, path)
    keys = ", ".join(list(document)[:_KEYS_SHOWN]) or "none"
    raise OlrPgError(
        Code.NOT_A_DICTIONARY,
        f'expected the key "format" with {FORMAT!r}, or the keys of a schema checkpoint'
        f" (sys-obj, sys-tab, …); found the keys {keys}",
        file=path,
    )
