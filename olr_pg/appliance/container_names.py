"""The dictionary of a source of several containers, under names that last.

A schema that several containers have is named with its container (`dictionary.containers`). A
container that is added later, or a schema that is made in another one, must not rename the tables
that are replicated: the ledger and the target know them by name. So ``containers.json`` of
``context.data`` keeps what each schema was called first: plain, of one container, or with the name
of its container.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from olr_pg.config.source_section import OfflineSource
from olr_pg.dictionary.containers import join_containers, names_given
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.durable import check_version, replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Snapshot

FILE_NAME: Final = "containers.json"
VERSION: Final = 1


def offline_dictionary(config: Config, source: OfflineSource, *, keep: bool = False) -> Snapshot:
    """Load the dictionary of an offline source.

    Args:
        config: whose `context.data` has the names that schemas were given before.
        keep: their names are to last: for who writes into a target.

    Raises:
        OlrPgError: 3xxx the dictionary, 1171 the names cannot be kept.
    """
    snapshots = [load_snapshot(str(path)) for path in source.dictionary]
    return join_under_known_names(config, snapshots, keep=keep)


def join_under_known_names(
    config: Config, snapshots: Sequence[Snapshot], *, keep: bool
) -> Snapshot:
    """Join the dictionaries of the source's containers; see `offline_dictionary`."""
    if len(snapshots) == 1:
        return snapshots[0]
    path = Path(config.context.data) / FILE_NAME
    known = _read(path)
    joined = join_containers(snapshots, known)
    given = {**known, **names_given(joined)}
    if keep and given != known:
        from olr_pg.appliance.target import data_directory

        data_directory(config)  # made as for whatever else it is to hold
        _write(path, given)
    return joined


def containers_of(config: Config) -> tuple[str, ...]:
    """Return the names of the source's containers, where they are several.

    Raises:
        OlrPgError: as `offline_dictionary`.
    """
    source = config.source
    if not isinstance(source, OfflineSource):
        return tuple(map(str.upper, source.containers)) if len(source.containers) > 1 else ()
    if len(source.dictionary) == 1:
        return ()
    return offline_dictionary(config, source).database.containers


def _read(path: Path) -> dict[str, str]:
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise _unusable(path, str(error)) from error
    check_version(data, VERSION, path)
    try:
        schemas = orjson.loads(data)["schemas"]
        return {str(schema): str(container) for schema, container in schemas.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unusable(path, "it is damaged") from error


def _write(path: Path, schemas: Mapping[str, str]) -> None:
    document = {"version": VERSION, "schemas": dict(sorted(schemas.items()))}
    try:
        replace_file(path, orjson.dumps(document, option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise _unusable(path, str(error)) from error


def _unusable(path: Path, why: str) -> OlrPgError:
    return OlrPgError(Code.CONTAINER_NAMES_UNUSABLE, why, file=str(path))
