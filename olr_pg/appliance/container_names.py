"""Stores permanent names for the schemas of a source with several containers.

If several containers have a schema of the same name, the name includes the container
(`dictionary.containers`). If a container or a schema is added later, the names of replicated tables
must not change, because the ledger and the target use them. So ``containers.json`` in
``context.data`` stores the first name of each schema, with or without the container. The file also
stores the name and DBID of each container, to detect a renamed container. After a rename the target
would not know the container's tables under the new name, and replication of its tables would end
without an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from olr_pg.config.source_section import OfflineSource
from olr_pg.decoding.left_out_report import log_left_out
from olr_pg.dictionary.containers import join_containers, names_given
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.true_charsets import idle_patterns, with_true_charsets
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import check_version, replace_file
from olr_pg.files.system_errors import advice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Snapshot

FILE_NAME: Final = "containers.json"
VERSION: Final = 1


class _Known(NamedTuple):
    """The stored names.

    Attributes:
        schemas: for each schema, the container whose name is left out; empty ("") if the schema's
            name includes the container.
        containers: the DBID of each container, by its name.
    """

    schemas: dict[str, str]
    containers: dict[str, int]


def offline_dictionary(config: Config, source: OfflineSource, *, keep: bool = False) -> Snapshot:
    """Load the dictionary of an offline source.

    Args:
        config: the configuration, whose `context.data` contains the stored names.
        keep: whether to store new names; True for commands that write to a target.

    Raises:
        OlrPgError: 3xxx errors of the dictionary, 3022 a configured character set cannot be used,
            1171 the names cannot be stored, 5091 a container was renamed.
    """
    snapshots = [load_snapshot(str(path)) for path in source.dictionary]
    return source_dictionary(config, snapshots, keep=keep)


def source_dictionary(config: Config, snapshots: Sequence[Snapshot], *, keep: bool) -> Snapshot:
    """Return the dictionary of the source: the joined dictionaries of its containers, with the
    configured character sets; see `offline_dictionary`.
    """
    joined = _joined(config, snapshots, keep=keep)
    sets = tuple(config.source.character_sets.items())
    if not sets:
        return joined
    for pattern in idle_patterns(joined.tables, sets):
        log_left_out(OlrPgError(Code.CHARACTER_SET_PATTERN_FITS_NOTHING, pattern))
    return with_true_charsets(joined, sets)


def _joined(config: Config, snapshots: Sequence[Snapshot], *, keep: bool) -> Snapshot:
    if len(snapshots) == 1:
        return snapshots[0]
    path = Path(config.context.data) / FILE_NAME
    known = _read(path)
    joined = join_containers(snapshots, known.schemas)
    named = {one.database.con_name or "": one.database.dbid or 0 for one in snapshots}
    _check_not_renamed(known.containers, named, path)
    given = _Known({**known.schemas, **names_given(joined)}, {**known.containers, **named})
    if keep and given != known:
        from olr_pg.appliance.target import data_directory

        data_directory(config)  # create the directory as for other files in it
        _write(path, given)
    return joined


def _check_not_renamed(known: Mapping[str, int], named: Mapping[str, int], path: Path) -> None:
    """Check that no container was renamed.

    Args:
        known: DBIDs of containers by their stored names.
        named: DBIDs by their current names.

    Raises:
        OlrPgError: 5091, a container was renamed.
    """
    for old, dbid in known.items():
        for new, other in named.items():
            if dbid and other == dbid and new != old and old not in named:
                raise OlrPgError(
                    Code.CONTAINER_RENAMED, f"{old} was renamed to {new}", file=str(path)
                )


def containers_of(config: Config) -> tuple[str, ...]:
    """Return the names of the source's containers, if there are several.

    Raises:
        OlrPgError: see `offline_dictionary`.
    """
    source = config.source
    if not isinstance(source, OfflineSource):
        return tuple(map(str.upper, source.containers)) if len(source.containers) > 1 else ()
    if len(source.dictionary) == 1:
        return ()
    return offline_dictionary(config, source).database.containers


def _read(path: Path) -> _Known:
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return _Known({}, {})
    except OSError as error:
        raise _unusable(path, plain_reason(error), error) from error
    check_version(data, VERSION, path)
    try:
        document = orjson.loads(data)
        return _Known(
            {str(schema): str(container) for schema, container in document["schemas"].items()},
            {str(name): int(dbid) for name, dbid in document.get("containers", {}).items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unusable(path, "it is damaged", error) from error


def _write(path: Path, known: _Known) -> None:
    parts = {name: dict(sorted(part.items())) for name, part in known._asdict().items()}
    document = {"version": VERSION, **parts}
    try:
        replace_file(path, orjson.dumps(document, option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise _unusable(path, plain_reason(error), error) from error


def _unusable(path: Path, why: str, error: Exception) -> OlrPgError:
    code = Code.CONTAINER_NAMES_UNUSABLE
    return OlrPgError(code, why, action=advice(error), file=str(path))
