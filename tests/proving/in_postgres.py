"""The statements of a scenario as PostgreSQL understands them: types, DUAL and CONNECT BY LEVEL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    Pairs = tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...]

_TYPES: Final[Pairs] = (
    (r"\bN?VARCHAR2\((\d+)(?: CHAR| BYTE)?\)", r"varchar(\1)"),
    (r"\bN?CHAR\((\d+)(?: CHAR| BYTE)?\)", r"char(\1)"),
    (r"\bNUMBER\b", "numeric"),
    (r"\bINTEGER\b|\bSMALLINT\b", "numeric(38)"),
    (r"\bFLOAT(?:\(\d+\))?", "numeric"),
    (r"\bBINARY_FLOAT\b", "real"),
    (r"\bBINARY_DOUBLE\b", "double precision"),
    (r"\bRAW\(\d+\)", "bytea"),
    (r"\bN?CLOB\b", "text"),
    (r"\bBLOB\b", "bytea"),
    (r"\bDATE(?=[,) ]|$)(?! ')", "timestamp(0)"),
    (r"\bPRIMARY KEY\b(?! \()", "PRIMARY KEY DEFERRABLE"),
    (r" ROWDEPENDENCIES| ORGANIZATION INDEX|, SUPPLEMENTAL LOG DATA \([\w ]+\) COLUMNS", ""),
    (r" PARTITION BY HASH \(\w+\) PARTITIONS \d+", ""),
    (r" PARTITION BY (RANGE|LIST) \(\w+\) \(.*\)(?= ENABLE|$)", ""),
    (r" ENABLE ROW MOVEMENT", ""),
    (r"\bMODIFY \((\w+) (varchar\(\d+\))\)", r"ALTER \1 TYPE \2"),
    (r"\bMODIFY (\w+) numeric\((\d+)\)", r"ALTER \1 TYPE numeric(\2)"),
    (r"\bMODIFY \((\w+) NOT NULL\)", r"ALTER \1 SET NOT NULL"),
    (r"\bMODIFY \((\w+) NULL\)", r"ALTER \1 DROP NOT NULL"),
    (
        r"\bSET UNUSED (?:COLUMN (\w+)|\((\w+)\))",
        lambda found: f"DROP COLUMN {found[1] or found[2]}",
    ),
    (r" LOB \(\w+\) STORE AS (SECUREFILE|BASICFILE)(?: \([\w ]+\))?", ""),
)
_WORDS: Final[Pairs] = (
    (r"FROM dual CONNECT BY LEVEL <= (\d+)", r"FROM generate_series(1, \1) AS g (level)"),
    (r"\s+FROM dual\b", ""),
    (r"HEXTORAW\('(\w*)'\)", r"'\\x\1'::bytea"),
    (r"UTL_RAW\.CAST_TO_RAW\(((?:[^()]|\([^()]*\))*)\)", r"convert_to(\1, 'UTF8')"),
    (r"TO_CLOB\(", "("),
    (r"EMPTY_BLOB\(\)", "''::bytea"),
    (r"TO_BINARY_FLOAT\('([^']*)'\)", r"'\1'::real"),
    (r"TO_BINARY_DOUBLE\('([^']*)'\)", r"'\1'::double precision"),
    (r"TO_DATE\('([\d-]+(?: [\d:]+)?)', '[^']*'\)", r"timestamp '\1'"),
    (r"^ROLLBACK TO (?:SAVEPOINT )?(\w+)$", r"ROLLBACK TO SAVEPOINT \1"),
    (r"\bADD \((.*)\)$", lambda found: "ADD " + found[1].replace(", ", ", ADD ")),
)


def in_postgres(statement: str) -> str:
    """The statement for PostgreSQL; empty for what is of no meaning there."""
    if (
        statement.upper().startswith("ALTER SYSTEM")
        or statement.endswith((" MOVE", " REBUILD"))
        or ("SUPPLEMENTAL LOG DATA" in statement and (statement.startswith("ALTER")))
    ):
        return ""
    if statement.startswith(("DECLARE", "BEGIN")):
        for pattern, replacement in (*_TYPES, *_WORDS):
            statement = re.sub(pattern, replacement, statement)
        return f"DO $block$ {statement} $block$"
    pairs = _WORDS
    if statement.startswith(("CREATE TABLE", "ALTER TABLE")):
        pairs = (*_TYPES, *_WORDS)
    for pattern, replacement in pairs:
        statement = re.sub(pattern, replacement, statement)
    return statement
