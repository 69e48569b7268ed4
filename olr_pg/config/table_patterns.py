"""Parses patterns of Oracle tables in `apply.tables`, and builds the TableList query that finds the
tables.

The query reads DBA_TABLES. ALL_TABLES would not be enough: it contains only tables that the account
can read, and replication does not require that right. Temporary and external tables are left out,
because their rows are not in the redo. Other tables that cannot be replicated are not left out, so
that the operator notices them and decides.

``*``, ``?`` and ``[abc]`` mean the same as in `filter`. A pattern that begins with ``!`` excludes
tables that other patterns match. The query must run on Oracle and on the offline source's SQLite
database, so it uses LIKE. LIKE has no sets such as ``[abc]``, so a pattern with a set becomes
several LIKE patterns. The query runs when a run begins. Tables that are created later and match a
pattern are found as well.

The module also parses Oracle table names in the configuration, and builds the TableList query that
returns them.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.dictionary import selection
from olr_pg.dictionary.oracle_schemas import ORACLE_SCHEMAS
from olr_pg.dictionary.table_list import WITH_REDO
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Sequence

SPELLINGS_MAX: Final = 64
"""Maximum number of LIKE patterns into which one part of a pattern (owner or name) may be
expanded.
"""

_WILD: Final = re.compile(r"[*?\[]")
_PART: Final = r'(?:"[^"\0]+"|(?:\[[^\]\s".,;\0]+\]|[^\s".,;\0\[\]])+)'
_PATTERN: Final = re.compile(rf"\s*(!?)\s*(?:({_PART})\s*\.\s*)?({_PART})\s*\.\s*({_PART})\s*")
_TOKEN: Final = re.compile(r"\[([^\]]+)\]|(.)")
LEDGER: Final = "OLR_PG_FALLBACK"
"""Name of the table, in the schema of the account of `fallback`, that records which transactions
were applied to Oracle. Every transaction of the fallback changes this table, so these transactions
can be recognised in Oracle's redo.
"""

_OWN: Final = (
    *("BIN$%", "MLOG$\\_%", "RUPD$\\_%", "SYS\\_IOT\\_OVER\\_%", "DR$%$%", "DR#%$_", "AQ$\\_%"),
    *("SYS\\_EXPORT\\_%\\___", "SYS\\_IMPORT\\_%\\___", "SYS\\_SQL\\_FILE\\_%\\___"),
    *("SYS\\_JOURNAL\\_%", "SYS\\_RESERVJRNL\\_%", "SYS\\_FBA\\_%", "SYS\\_MFBA\\_%"),
    *("CMP1$%", "CMP2$%", "CMP3$%", "CMP4$%", "DBMS\\_TABCOMP\\_TEMP\\_%"),
    *("MDR_\\_%$", "MDXT\\_%$%", "VECTOR$%$%"),
    LEDGER.replace("_", "\\_") + "%",
)
"""LIKE patterns of tables that Oracle creates itself in the schemas of users, and of the tables in
which the way back keeps its position.

In this order: recycle bin, logs of materialised views, overflow segments of index-organised tables,
text indexes (DR# if partitioned), queues; tables of Data Pump's jobs; journals of indexes that are
built online and of RESERVABLE columns, flashback archives; estimates of compression; spatial
indexes, vector indexes. (Oracle GoldenGate, Excluded Objects, and the manuals of these features.)

Nothing reports a table that is left out by these patterns, so each pattern matches as few other
names as possible. There is no pattern for a prefix that only the manual reserves: DM$ (mining
models) and AW$ (analytic workspaces) are followed by names that users choose, and a data mart can
have such tables.
"""


class TablePattern(NamedTuple):
    """A pattern of ``OWNER.NAME``. For ``PDB.OWNER.NAME``, the owner is ``PDB.OWNER``.

    Attributes:
        owner, name: the LIKE patterns of owner and name, escaped with a backslash; one for each
            expansion of the sets.
        excluded: whether the pattern excludes the tables that it matches.
        text: the pattern as the file contains it.
    """

    owner: tuple[str, ...]
    name: tuple[str, ...]
    excluded: bool
    text: str

    def __str__(self) -> str:
        return self.text


def parse_pattern(text: str) -> TablePattern | None:
    """Parse a pattern; return None if the text is a name without wildcards. Parts without quotes
    are converted to upper case.

    Raises:
        ValueError: the pattern is malformed, or its sets have too many expansions.
    """
    match = _PATTERN.fullmatch(text)
    if match is None:
        if text.lstrip().startswith("!") or _WILD.search(text):
            raise ValueError(f"{text!r} is not a pattern of OWNER.NAME")
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
    """Return the LIKE patterns for one part of a table pattern (PDB, owner or name): one for each
    combination of characters from its sets (`[…]`).
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
    """Return the characters of a set; a range such as a-f becomes its characters."""
    if chosen[0] in "!^":
        raise ValueError(
            f"[{chosen}]: a set in [] must list the characters that match; it cannot exclude"
            " characters"
        )
    found = []
    for low, high, char in re.findall(r"(.)-(.)|(.)", chosen):
        found += [chr(at) for at in range(ord(low), ord(high) + 1)] if low else [char]
    if not found:
        raise ValueError(f"[{chosen}] contains no character")
    return found


def _escaped(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)


def pattern_query(pattern: TablePattern, excluded: Sequence[TablePattern]) -> str:
    """Return the query that finds the tables of a pattern. If no table matches, the query returns
    the pattern's own text; the server then rejects that as an unknown table.

    Args:
        excluded: patterns of tables that the query must not return.
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
    """Return whether a LIKE pattern contains a wildcard: an unescaped % or _."""
    return bool(re.search(r"[%_]", re.sub(r"\\.", "", spelling)))


def _unescaped(spelling: str) -> str:
    return re.sub(r"\\(.)", r"\1", spelling)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


OWN_SCHEMA: Final = "olr_pg"
"""The schema of the appliance's ledger in a target; no tables are replicated into it."""

_UNION_MAX: Final = 200
"""Maximum number of entries in one compound query. An entry has up to two SELECTs, and SQLite
allows 500 SELECTs in a compound query.
"""


class TableName(NamedTuple):
    """Owner and name of a table, exactly as the dictionary contains them."""

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}.{self.name}"


def configured_table_name(text: str) -> TableName:
    """Parse ``OWNER.NAME``; a part in double quotes keeps its case.

    Raises:
        ValueError: the text is not two identifiers separated by a dot.
    """
    try:
        return TableName(*selection.parse_table_name(text))
    except OlrPgError as error:
        raise ValueError(error.detail) from error


def table_list_query(tables: Sequence[TableName | TablePattern]) -> str:
    """Return the TableList query that returns exactly these tables, in this order.

    The query selects names as literals, not from a view. So the query also returns the name of a
    table that does not exist, and the server rejects that name; a query of a view would silently
    leave the name out. For the same reason, the query returns the text of a pattern that matches no
    table. The query runs on Oracle and on the offline source's SQLite database.
    """
    excluded = [one for one in tables if isinstance(one, TablePattern) and one.excluded]
    wanted = [one for one in tables if one not in excluded]
    parts = [wanted[i : i + _UNION_MAX] for i in range(0, len(wanted), _UNION_MAX)]
    unions = [
        " UNION ALL ".join(
            pattern_query(one, excluded) if isinstance(one, TablePattern) else _select_literals(one)
            for one in part
        )
        for part in parts
    ]
    if len(unions) == 1:
        return unions[0]
    return " UNION ALL ".join(f"SELECT OWNER, TABLE_NAME FROM ({union})" for union in unions)  # noqa: S608 - of quoted literals


def _select_literals(table: TableName) -> str:
    owner, name = (part.replace("'", "''") for part in table)
    return f"SELECT '{owner}' AS OWNER, '{name}' AS TABLE_NAME FROM DUAL"  # noqa: S608 - quoted
