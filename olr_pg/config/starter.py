"""Writes the text of a first configuration file, with comments, from the answers to a few
questions.

All other keys have their defaults, which `configs/oracle-to-postgres.json5` shows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

SECRETS: Final = ("ORACLE_PASSWORD", "PG_PASSWORD")
"""The environment variables to which such a file can refer for passwords."""

_HEAD: Final = """\
// Written by olr-pg init. Comments and trailing commas are allowed; relative paths start at this
// file's folder; docs/configuration.md has every key.
//
// ${{NAME}} is taken from the environment: {secrets}.
{{
  "context": {{ "data": "olr_data" }}, // checkpoint, spilled transactions, copies of the dictionary
"""
_LIVE: Final = """
  "source": {{
    "user": {user},
    "password": "${{ORACLE_PASSWORD}}",
    "server": {server}, // host:port/service of {whose}
{containers}{mapping}{transport}\
    // "redo": "online", // follow the online logs too: commits arrive within a second
  }},
"""
_MAPPING: Final = """\
    // Where the archived logs of V$ARCHIVED_LOG are mounted here: "there", "here".
    "path-mapping": {places},
"""
_MOUNTED: Final = """\
    // Not mounted? docs/transport.md: archived and online logs over this connection, SFTP, ...
    // "vault": { "directory": "vault" }, "transport": { "kind": "bfile" },
"""
_TRANSPORT: Final = """\
    "vault": {{ "directory": "vault" }}, // copies of the logs, beside this file
    "transport": {transport}, // docs/transport.md: what it needs there
"""
_CONTAINERS: Final = """\
    "containers": {names}, // docs/containers.md: what the PDBs must have in common
"""
_OFFLINE: Final = """
  "source": {{
    "kind": "offline",
    "dictionary": {dictionary}, // of olr-pg dictionary export, from before the first change wanted
    "logs": {logs}, // files, directories and globs
  }},
"""
_APPLY: Final = """
  "apply": {{
    "connect-string": {target},
    "tables": {tables}, // OWNER.NAME each, or patterns as SHOP.*
    "create-tables": true, // those that the target lacks
  }},
}}
"""


class LiveSource(NamedTuple):
    """A live source database.

    Attributes:
        mapping: a flat list: a path in Oracle, then its path on this host, then the next pair.
        containers: the PDBs that contain the tables; empty for the container of the service in
            `server`.
        transport: the section `source.transport` for logs that are not mounted; empty if all are
            mounted.
    """

    server: str
    user: str
    mapping: Sequence[str]
    containers: Sequence[str] = ()
    transport: Mapping[str, object] = MappingProxyType({})


class CopiedSource(NamedTuple):
    """A source that consists of copied archived logs and a dictionary snapshot."""

    dictionary: str
    logs: Sequence[str]


def starter_text(source: LiveSource | CopiedSource, target: str, tables: Sequence[str]) -> str:
    """Return the text of the configuration file.

    Args:
        target: the value of `apply.connect-string`; for the password, ``${PG_PASSWORD}`` is
            recommended.
        tables: the tables, each as ``OWNER.NAME``, or patterns of tables.
    """
    if isinstance(source, LiveSource):
        part = _LIVE.format(
            user=_json(source.user),
            server=_json(source.server),
            whose="the database" if source.containers else "the container that holds the tables",
            containers=_CONTAINERS.format(names=_json(source.containers))
            if source.containers
            else "",
            mapping=_MAPPING.format(places=_json(source.mapping)) if source.mapping else "",
            transport=_TRANSPORT.format(transport=_json(source.transport))
            if source.transport
            else _MOUNTED,
        )
    else:
        part = _OFFLINE.format(dictionary=_json(source.dictionary), logs=_json(source.logs))
    text = part + _APPLY.format(target=_json(target), tables=_json(tables))
    secrets = [name for name in SECRETS if f"${{{name}}}" in text]
    return _HEAD.format(secrets=" and ".join(secrets) or "nothing yet") + text


def _json(value: str | Sequence[str] | Mapping[str, object]) -> str:
    plain = dict(value) if isinstance(value, Mapping) else value
    return json.dumps(list(plain) if isinstance(plain, tuple) else plain, ensure_ascii=False)
