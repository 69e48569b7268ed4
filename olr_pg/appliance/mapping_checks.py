"""Finds names and patterns in `apply` that match no table or column of the source.

A name or pattern without a match has no effect, and is probably misspelt. Without a report, nobody
would notice it until the rows are in another schema, or a column has another type, than the
configuration says. So `run` and `initial-load` warn about it, and `olr-pg doctor` reports it before
they start. `decoding.filters` checks the patterns of `filter` in the same way.

A warning is enough: a mapping may be for a table that the source will create later.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from olr_pg.config.model import NamedTarget
from olr_pg.decoding.filters import filters_of
from olr_pg.decoding.left_out_report import log_left_out
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Finding, coded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from olr_pg.config.model import Apply, Config
    from olr_pg.dictionary.model import Table


def check_idle(config: Config, tables: Sequence[Table]) -> list[Finding]:
    """Return a warning for each name or pattern of `filter` and `apply` that matches nothing.

    The common filter of several targets is not checked, because its patterns may be for the tables
    of another target.

    Args:
        config: the configuration of one target.
        tables: the tables of the source that are known; empty if they could not be read.
    """
    if not tables:
        return []
    port = config.target
    filters = filters_of(port.filter if isinstance(port, NamedTarget) else config.filter)
    found = [coded("filter", _idle(*one), severe=False) for one in filters.idle(tables)]
    if config.apply is not None:
        found += [
            coded("mapping", _idle(*one), severe=False) for one in _of_apply(config.apply, tables)
        ]
    return found


def report_idle_mappings(apply: Apply, tables: Sequence[Table], **named: str) -> None:
    """Log a warning about every name or pattern of `apply` that matches nothing.

    Args:
        named: the name of the target, if there are several.
    """
    for key, pattern in _of_apply(apply, tables):
        log_left_out(_idle(key, pattern, **named))


def _idle(key: str, pattern: str, **named: str) -> OlrPgError:
    return OlrPgError(Code.PATTERN_FITS_NOTHING, pattern, key=key, **named)


def _of_apply(apply: Apply, tables: Sequence[Table]) -> Iterator[tuple[str, str]]:
    names = {name for table in tables for name in table.names}
    owners = {name.removesuffix(f".{table.name}") for table in tables for name in table.names}
    columns = [
        f"{name}.{column.name}"
        for table in tables
        for name in table.names
        for column in table.columns
    ]
    for owner in apply.schema_mapping:
        if owner not in owners:
            yield "apply.schema-mapping", owner
    for table in apply.table_mapping:
        if table not in names:
            yield "apply.table-mapping", table
    for pattern in apply.columns:
        if not _fits_any(columns, pattern):
            yield "apply.columns", pattern
    for pattern in apply.incomplete_lobs:
        if not _fits_any(columns, pattern):
            yield "apply.incomplete-lobs", pattern


def _fits_any(names: Iterable[str], pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) or fnmatchcase(name, pattern.upper()) for name in names)
