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
// Written by olr-pg init. Comments and trailing commas are allowed. Relative paths are relative to
// the folder of this file. docs/configuration.md explains all keys.
//
// Set these environment variables, which ${{NAME}} refers to: {secrets}.
{{
  "context": {{ "data": "olr_data" }}, // checkpoint, spilled transactions, copies of the dictionary
"""
_LIVE: Final = """
  "source": {{
    "user": {user},
    "password": "${{ORACLE_PASSWORD}}",
    "server": {server}, // host:port/service of {whose}
{containers}{mapping}{transport}\
    // "redo": "online", // also read the online logs: commits arrive within a second
  }},
"""
_MAPPING: Final = """\
    // Pairs of paths: a directory of archived logs in Oracle, and where it is mounted here.
    "path-mapping": {places},
"""
_MOUNTED: Final = """\
    // If the logs are not mounted, read them over this connection or SFTP (docs/transport.md):
    // "vault": { "directory": "vault" }, "transport": { "kind": "bfile" },
"""
_TRANSPORT: Final = """\
    "vault": {{ "directory": "vault" }}, // directory for copies of the logs
    "transport": {transport}, // docs/transport.md lists its requirements
"""
_CONTAINERS: Final = """\
    "containers": {names}, // docs/containers.md lists the requirements
"""
_OFFLINE: Final = """
  "source": {{
    "kind": "offline",
    "dictionary": {dictionary}, // from `olr-pg dictionary export`, before the first change
    "logs": {logs}, // files, directories and globs
  }},
"""
_APPLY: Final = """
  "apply": {{
    "connect-string": {target},
    "tables": {tables}, // a list of OWNER.NAME, or patterns such as SHOP.*
    "create-tables": true, // create missing target tables
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
    return _HEAD.format(secrets=" and ".join(secrets) or "none") + text


def _json(value: str | Sequence[str] | Mapping[str, object]) -> str:
    plain = dict(value) if isinstance(value, Mapping) else value
    return json.dumps(list(plain) if isinstance(plain, tuple) else plain, ensure_ascii=False)
