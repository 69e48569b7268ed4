"""Selects tables of a snapshot by name."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.containers import ContainerNames
from olr_pg.dictionary.oracle_schemas import is_oracle_schema
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from olr_pg.dictionary.model import Snapshot, Table

_NAME_PART: Final = r'(?:"([^"\0]+)"|([^\s".,;\0]+))'
_QUALIFIED_NAME: Final = re.compile(
    rf"\s*(?:{_NAME_PART}\s*\.\s*)?{_NAME_PART}\s*\.\s*{_NAME_PART}\s*"
)
_REFUSED_SHOWN: Final = 10
_NEAR_MAX: Final = 3
_NEAR: Final = 0.75
"""Minimum similarity (0 to 1) of a name that is suggested instead of an unknown name."""


@dataclass(frozen=True, slots=True)
class TableSelection:
    """Tables that can be replicated, and tables that cannot (`Table.obstacle` is the reason)."""

    tables: tuple[Table, ...]
    refused: tuple[Table, ...] = ()


def parse_table_name(text: str) -> tuple[str, str]:
    """Return (owner, name) of ``OWNER.NAME``. As in Oracle, unquoted parts are converted to upper
    case.

    For ``PDB.OWNER.NAME``, a table in one of several containers, the owner is ``PDB.OWNER``.

    Raises:
        OlrPgError: 3018, the text is not a qualified name.
    """
    match = _QUALIFIED_NAME.fullmatch(text)
    if match is None:
        raise OlrPgError(Code.TABLE_NAME_MALFORMED, f"found {text!r}")
    parts = match.groups()
    quoted = zip(parts[::2], parts[1::2], strict=True)
    container, owner, name = (one or (other and other.upper()) for one, other in quoted)
    return f"{container}.{owner}" if container else owner, name


def as_known(names: Iterable[str], known: Collection[str]) -> list[str]:
    """Return table names in the form in which they are known, each once.

    A known name is returned unchanged. An unknown name is parsed by `parse_table_name`, so its
    unquoted parts are converted to upper case.
    """
    return [*dict.fromkeys(name if name in known else _folded(name) for name in names)]


def _folded(name: str) -> str:
    is_name = _QUALIFIED_NAME.fullmatch(name) is not None
    return ".".join(parse_table_name(name)) if is_name else name.upper()


def select_tables(snapshot: Snapshot, names: Iterable[str]) -> tuple[Table, ...]:
    """Return the tables with these names, in the order of the names, each once.

    Args:
        names: ``OWNER.NAME`` or ``"Owner"."Name"``.

    Raises:
        OlrPgError: 3012 a table does not exist, 3013 it cannot be replicated, 3018 a name is
            malformed.
    """
    return find_tables(snapshot, (parse_table_name(name) for name in names))


def find_tables(
    snapshot: Snapshot, names: Iterable[tuple[str, str]], *, with_refused: bool = False
) -> tuple[Table, ...]:
    """Return the tables with exactly these owners and names, in the order of the pairs, each once.

    If there are several containers, an owner can be given with or without its container. Without a
    container, the tables of that name in all containers are returned.

    Args:
        with_refused: whether to return also tables that cannot be replicated, for a report with the
            reasons.

    Raises:
        OlrPgError: 3012 a table does not exist, 3013 it cannot be replicated.
    """
    known = _by_name(snapshot)
    found: dict[str, Table] = {}
    for pair in names:
        if pair not in known:
            raise OlrPgError(
                Code.TABLE_UNKNOWN,
                f"there is no {'.'.join(pair)} as of SCN {snapshot.scn}"
                f"{like_it(snapshot.tables, pair)}",
                table=".".join(pair),
            )
        found.update((table.full_name, table) for table in known[pair])
    if not with_refused:
        _check_replicable([table for table in found.values() if table.obstacle is not None])
    return tuple(found.values())


def has_tables(snapshot: Snapshot, names: Iterable[tuple[str, str]]) -> bool:
    """Return whether a table exists for each (owner, name) pair."""
    return not missing_tables(snapshot, names)


def missing_tables(snapshot: Snapshot, names: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the (owner, name) pairs for which no table exists, in their order."""
    known = _by_name(snapshot)
    return [pair for pair in names if pair not in known]


def _by_name(snapshot: Snapshot) -> dict[tuple[str, str], list[Table]]:
    """Return the tables by all their possible names."""
    known: dict[tuple[str, str], list[Table]] = {}
    for member in snapshot.containers:
        names = ContainerNames.of(member)
        for table in member.tables:
            for owner in names.spellings(table.source_owner):
                known.setdefault((owner, table.name), []).append(table)
    return known


def user_tables(snapshot: Snapshot) -> TableSelection:
    """Return all tables of the snapshot that do not belong to Oracle."""
    own = [table for table in snapshot.tables if not is_oracle_schema(table.source_owner)]
    return TableSelection(
        tables=tuple(table for table in own if table.obstacle is None),
        refused=tuple(table for table in own if table.obstacle is not None),
    )


def _check_replicable(refused: Sequence[Table]) -> None:
    if not refused:
        return
    reasons = "; ".join(
        f"{table.full_name}: {table.obstacle}" for table in refused[:_REFUSED_SHOWN]
    )
    rest = len(refused) - _REFUSED_SHOWN
    raise OlrPgError(
        Code.TABLE_NOT_REPLICABLE,
        reasons + (f"; and {rest} more" if rest > 0 else ""),
        table=refused[0].full_name,
    )


def like_it(tables: Sequence[Table], pair: tuple[str, str]) -> str:
    """Return a text that suggests similar table names for an unknown table; empty if there are
    none.
    """
    folded = tuple(part.casefold() for part in pair)
    for table in tables:
        if (table.owner.casefold(), table.name.casefold()) == folded:
            return f'; did you mean "{table.owner}"."{table.name}"'
    own = {table.full_name for table in tables if not is_oracle_schema(table.source_owner)}
    near = difflib.get_close_matches(".".join(pair).strip("!").upper(), own, _NEAR_MAX, _NEAR)
    return f"; did you mean {' or '.join(near)}" if near else ""
