"""Estimates the effort to rewrite PL/SQL, from the number of its lines and from the constructs that
PostgreSQL lacks or executes differently. They are found by the tokens of the code.

Comments and literals are ignored: sqlglot's tokenizer for Oracle finds the words of the code (if it
fails, all words of the text are used).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

from sqlglot.dialects.oracle import Oracle
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from olr_pg.assessment.report import Carrier, Effort, Item

_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z_][\w$#]*|%\w+|\S")

CONSTRUCTS: Final[dict[str, tuple[str, int]]] = {
    "AUTONOMOUS_TRANSACTION": ("an autonomous transaction: use dblink or another design", 60),
    "BULK COLLECT": ("BULK COLLECT: use array_agg or a loop", 10),
    "FORALL": ("FORALL: use one statement with unnest()", 10),
    "CONNECT BY": ("CONNECT BY: use WITH RECURSIVE", 30),
    "EXECUTE IMMEDIATE": ("EXECUTE IMMEDIATE: use EXECUTE … USING", 10),
    "REF CURSOR": ("REF CURSOR: use refcursor", 15),
    "SYS_REFCURSOR": ("SYS_REFCURSOR: use refcursor", 10),
    "PIPELINED": ("a pipelined function: use RETURNS SETOF with RETURN NEXT", 20),
    "PIPE ROW": ("PIPE ROW: use RETURN NEXT", 5),
    "INDEX BY": ("an associative array: use jsonb, hstore or a temporary table", 30),
    "TABLE OF": ("a collection type: use an array", 15),
    "VARRAY": ("VARRAY: use an array", 15),
    "GOTO": ("GOTO: use loops and conditions", 30),
    "RAISE_APPLICATION_ERROR": ("RAISE_APPLICATION_ERROR: use RAISE EXCEPTION … USING ERRCODE", 5),
    "PRAGMA EXCEPTION_INIT": ("PRAGMA EXCEPTION_INIT: use conditions with an SQLSTATE", 10),
    "SQLCODE": ("SQLCODE: use SQLSTATE", 5),
    "MERGE": ("MERGE: PostgreSQL's MERGE has other clauses", 10),
    "ROWNUM": ("ROWNUM: use LIMIT or row_number()", 5),
    "ROWID": ("ROWID: use the key, because the ctid of a row changes", 20),
    "DUAL": ("DUAL: omit FROM DUAL", 1),
    "SYSDATE": ("SYSDATE: use statement_timestamp()", 1),
    "NEXTVAL": ("NEXTVAL of a sequence: use nextval('…')", 1),
    "DECODE": ("DECODE: use CASE", 2),
    "NVL": ("NVL: use coalesce(); in PostgreSQL, an empty text is not NULL", 1),
    "COMMIT": ("COMMIT: allowed only in procedures that are called outside a transaction", 20),
    "ROLLBACK": ("ROLLBACK: allowed only in procedures that are called outside a transaction", 20),
    "SAVEPOINT": ("SAVEPOINT: use a block with EXCEPTION", 20),
    "LOCK TABLE": ("LOCK TABLE: PostgreSQL has other lock modes", 10),
    "DBMS_OUTPUT": ("DBMS_OUTPUT: use RAISE NOTICE", 2),
    "DBMS_SQL": ("DBMS_SQL: use EXECUTE", 60),
    "DBMS_LOB": ("DBMS_LOB: use the functions for text and bytea", 15),
    "DBMS_JOB": ("DBMS_JOB: use pg_cron or cron", 30),
    "DBMS_SCHEDULER": ("DBMS_SCHEDULER: use pg_cron or cron", 30),
    "DBMS_MVIEW": ("DBMS_MVIEW: use REFRESH MATERIALIZED VIEW", 5),
    "DBMS_LOCK": ("DBMS_LOCK: use advisory locks", 20),
    "DBMS_AQ": ("DBMS_AQ: use a queue table or a message broker", 240),
    "DBMS_RANDOM": ("DBMS_RANDOM: use random()", 5),
    "DBMS_CRYPTO": ("DBMS_CRYPTO: use pgcrypto", 30),
    "DBMS_XMLGEN": ("DBMS_XMLGEN: use query_to_xml()", 30),
    "UTL_FILE": ("UTL_FILE: move file access to the application", 60),
    "UTL_HTTP": ("UTL_HTTP: move HTTP requests to the application", 120),
    "UTL_SMTP": ("UTL_SMTP: move mail to the application", 120),
    "UTL_MAIL": ("UTL_MAIL: move mail to the application", 60),
    "UTL_RAW": ("UTL_RAW: use encode() and decode()", 15),
    "XMLTYPE": ("XMLTYPE: use the type xml", 30),
    "SYS_CONTEXT": ("SYS_CONTEXT: use current_setting()", 10),
    "OBJECT": ("an object type: use a composite type, which has no methods", 60),
    "MEMBER": ("a method of an object type: use a function", 30),
    "DETERMINISTIC": ("DETERMINISTIC: use IMMUTABLE", 1),
    "%TYPE": ("%TYPE: the same", 0),
    "%ROWTYPE": ("%ROWTYPE: the same", 0),
    "%ROWCOUNT": ("SQL%ROWCOUNT: use GET DIAGNOSTICS", 5),
    "%FOUND": ("SQL%FOUND: use FOUND", 2),
    "%NOTFOUND": ("SQL%NOTFOUND: use NOT FOUND", 2),
    "%ISOPEN": ("%ISOPEN: PostgreSQL has no equivalent", 10),
    "@": ("a database link: use a foreign table", 60),
}
"""For one or more words: the replacement in PostgreSQL, and the minutes of work for each
occurrence.
"""

_PACKAGE_STATE: Final = ("package variables: use settings (set_config)", 60)


class Construct(NamedTuple):
    """A construct, and the number of its occurrences."""

    word: str
    places: int
    advice: str
    minutes: int


def find_constructs(text: str) -> list[Construct]:
    """Return the constructs that PostgreSQL lacks or executes differently; those with the most
    effort come first.
    """
    words = _words(text)
    found = Counter[str]()
    for at, word in enumerate(words):
        pair = f"{word} {words[at + 1]}" if at + 1 < len(words) else word
        if pair in CONSTRUCTS:
            found[pair] += 1
        elif word in CONSTRUCTS:
            found[word] += 1
    listed = [
        Construct(word, count, CONSTRUCTS[word][0], CONSTRUCTS[word][1] * count)
        for word, count in found.items()
    ]
    return sorted(listed, key=lambda one: (-one.minutes, one.word))


def package_state(text: str) -> Construct | None:
    """Return a construct if a package body has variables before its first routine, because these
    keep state; otherwise None.
    """
    words = _words(text)
    if words[:2] != ["PACKAGE", "BODY"]:
        return None
    head = words[
        : min((words.index(w) for w in ("PROCEDURE", "FUNCTION") if w in words), default=0)
    ]
    count = head.count(";")
    return Construct("package variables", count, *_PACKAGE_STATE) if count else None


def code_lines(text: str) -> int:
    """Return the number of lines that are neither empty nor comments."""
    lines = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).splitlines()
    return sum(bool(line.strip()) and not line.strip().startswith("--") for line in lines)


def _words(text: str) -> list[str]:
    """Return the words of the code in upper case; an attribute such as ``%TYPE`` is one word."""
    try:
        tokens = Oracle().tokenize(text)
    except TokenError:
        plain = _COMMENT.sub(" ", text)
        return [word.upper() for word in _WORD.findall(plain)]
    words = list[str]()
    for token in tokens:
        if token.token_type in (TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.RAW_STRING):
            continue
        word = token.text.upper()
        if words and words[-1] == "%":
            words[-1] = f"%{word}"
        else:
            words += word.replace("@", " @ ").split() or [word]
    return words


_MINUTES_EACH_LINE: Final = 1
_SHORT, _LONG = 30, 120


def code_item(kind: str, name: str, text: str, remark: str = "") -> Item:
    """Assess a unit of PL/SQL."""
    constructs = find_constructs(text)
    state = package_state(text)
    if state is not None:
        constructs = [state, *constructs]
    lines = code_lines(text)
    minutes = max(lines * _MINUTES_EACH_LINE, 5) + sum(one.minutes for one in constructs)
    effort = Effort.LOW if minutes <= _SHORT else Effort.MEDIUM
    if minutes > _LONG:
        effort = Effort.HIGH
    reasons = [*([remark] if remark else []), f"rewrite {lines} lines of PL/SQL"]
    reasons += [f"{one.places} × {one.advice}" for one in constructs if one.minutes]
    if kind == "PACKAGE":
        reasons.append(
            "replace the package by a schema, and its routines by functions in this schema"
        )
    return Item(kind, name, Carrier.BY_HAND, effort, minutes, tuple(reasons), lines)
