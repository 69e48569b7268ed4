"""Patterns of Oracle tables in `apply.tables`, and the TableList query that finds the tables.

The query reads DBA_TABLES: ALL_TABLES contains only tables that the account can read, which
replication does not require. Temporary and external tables are left out, because their rows are not
in the redo. Other tables that cannot be replicated are found, so that the operator decides about
them.

``*``, ``?`` and ``[abc]`` mean the same as in `filter`; a pattern that begins with ``!`` excludes
tables that other patterns match. The query runs on Oracle and on the offline source's SQLite
database, so it uses LIKE. LIKE has no sets, so sets are expanded. The matching tables are
determined when a run begins; a table that is created later is found as well.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.dictionary.oracle_schemas import ORACLE_SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Sequence

SPELLINGS_MAX: Final = 64
"""Maximum number of expansions of the sets in one part of a pattern."""

_WILD: Final = re.compile(r"[*?\[]")
_PART: Final = r'(?:"[^"\0]+"|(?:\[[^\]\s".,;\0]+\]|[^\s".,;\0\[\]])+)'
_PATTERN: Final = re.compile(rf"\s*(!?)\s*(?:({_PART})\s*\.\s*)?({_PART})\s*\.\s*({_PART})\s*")
_TOKEN: Final = re.compile(r"\[([^\]]+)\]|(.)")
_OWN: Final = ("BIN$%", "MLOG$\\_%", "RUPD$\\_%", "SYS\\_IOT\\_OVER\\_%", "DR$%")
"""Tables that Oracle creates itself: recycle bin, logs of materialised views, overflow of
index-organised tables, text indexes.
"""


WITH_REDO: Final = (
    "TEMPORARY = 'N'"
    " AND (TABLESPACE_NAME IS NOT NULL OR PARTITIONED = 'YES' OR IOT_TYPE IS NOT NULL)"
)
"""Condition for tables whose rows are in the database: a table that is neither partitioned nor
index-organised has a tablespace, an external table has none (Oracle Database Reference,
DBA_TABLES).
"""


class TablePattern(NamedTuple):
    """A pattern of ``OWNER.NAME``, or of ``PDB.OWNER.NAME``, whose owner is ``PDB.OWNER``.

    Attributes:
        owner, name: as patterns for LIKE, one for each expansion; escaped with a backslash.
        excluded: whether its tables are excluded.
        text: as in the file.
    """

    owner: tuple[str, ...]
    name: tuple[str, ...]
    excluded: bool
    text: str

    def __str__(self) -> str:
        return self.text


def parse_pattern(text: str) -> TablePattern | None:
    """Parse a pattern; None for a plain name. Unquoted parts are folded to upper case.

    Raises:
        ValueError: it is malformed, or its sets have too many expansions.
    """
    match = _PATTERN.fullmatch(text)
    if match is None:
        if text.lstrip().startswith("!") or _WILD.search(text):
            raise ValueError(f"{text!r} is no pattern of OWNER.NAME")
        return None
    bang, container, owner, name = match.groups()
    parts = (container or "", owner, name)
    is_wild = any(_WILD.search(part) for part in parts if not part.startswith('"'))
    if not bang and not is_wild:
        return None
    owners = _spellings(owner)
    if container:
        both = itertools.product(_spellings(container), owners)
        owners = tuple(f"{one}.{other}" for one, other in both)
    return TablePattern(owners, _spellings(name), bool(bang), text.strip())


def _spellings(part: str) -> tuple[str, ...]:
    """Return the LIKE patterns for one part of a table pattern. A part with sets (`[…]`) gives a
    pattern for each choice.
    """
    if part.startswith('"'):
        return (_escaped(part[1:-1]),)
    choices = []
    for chosen, char in _TOKEN.findall(part.upper()):
        if chosen:
            choices.append([_escaped(one) for one in _members(chosen)])
        else:
            choices.append([{"*": "%", "?": "_"}.get(char, _escaped(char))])
    count = 1
    for choice in choices:
        count *= len(choice)
        if count > SPELLINGS_MAX:
            raise ValueError(f"the sets of {part!r} have more than {SPELLINGS_MAX} spellings")
    return tuple("".join(one) for one in itertools.product(*choices))


def _members(chosen: str) -> list[str]:
    """Return the characters of a set, with ranges expanded."""
    if chosen[0] in "!^":
        raise ValueError(f"[{chosen}]: a set names what fits, not what does not")
    found = []
    for low, high, char in re.findall(r"(.)-(.)|(.)", chosen):
        found += [chr(at) for at in range(ord(low), ord(high) + 1)] if low else [char]
    if not found:
        raise ValueError(f"[{chosen}] holds no character")
    return found


def _escaped(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)


def pattern_query(pattern: TablePattern, excluded: Sequence[TablePattern]) -> str:
    """Return the query of a pattern; if nothing matches, it returns the pattern's text, which is
    not a table.

    Args:
        excluded: patterns whose tables are excluded.
    """
    where = _condition(pattern)
    own = " AND ".join(f"NOT {_like('TABLE_NAME', (one,))}" for one in _OWN)
    where += f" AND {own} AND {WITH_REDO}"
    if any(_is_wild(one) for one in pattern.owner):
        schemas = ", ".join(f"'{schema}'" for schema in sorted(ORACLE_SCHEMAS))
        where += f" AND OWNER NOT IN ({schemas})"
    for one in excluded:
        where += f" AND NOT ({_condition(one)})"
    found = f"SELECT OWNER, TABLE_NAME FROM DBA_TABLES WHERE {where}"  # noqa: S608 - quoted
    owner, _, name = pattern.text.rpartition(".")
    nothing = f"SELECT {_quoted(owner)} AS OWNER, {_quoted(name)} AS TABLE_NAME FROM DUAL"  # noqa: S608 - quoted
    return f"{found} UNION ALL {nothing} WHERE NOT EXISTS ({found})"


def _condition(pattern: TablePattern) -> str:
    return f"({_like('OWNER', pattern.owner)}) AND ({_like('TABLE_NAME', pattern.name)})"


def _like(column: str, spellings: Sequence[str]) -> str:
    return " OR ".join(
        f"{column} LIKE {_quoted(one)} ESCAPE '\\'"
        if _is_wild(one)
        else f"{column} = {_quoted(_unescaped(one))}"
        for one in spellings
    )


def _is_wild(spelling: str) -> bool:
    """Return whether a part needs LIKE, because it contains an unescaped % or _."""
    return bool(re.search(r"[%_]", re.sub(r"\\.", "", spelling)))


def _unescaped(spelling: str) -> str:
    return re.sub(r"\\(.)", r"\1", spelling)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
