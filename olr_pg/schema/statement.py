"""Defines a converted statement for the target's schema, and the order in which kinds of statements
run.

Statements are made with `each_safely`: an internal error in one object does not end the command.

`write_files` writes the converted statements as SQL files: one file for each kind of object, in the
order in which they run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.files.owned import remove_plain, written_whole
from olr_pg.observability.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType

KINDS: Final = (
    "schema",
    "sequence",
    "table",
    "partition",
    "primary key",
    "unique key",
    "generated column",
    "default",
    "check",
    "comment",
    "index",
    "foreign key",
    "view",
    "view comment",
    "materialized view",
    "function",
    "procedure",
    "trigger",
    "grant",
    "by hand",
)
"""The kinds of statements, in the order in which they run. Each kind has a file, whose number is
the kind's position here.
"""

INDEXES: Final = frozenset(("unique key", "index"))
"""Kinds of statements that create an index. These statements run after the initial load, because
with an index, the load would reject rows with values that are too long for the index.
"""

BEFORE_DATA: Final = frozenset(KINDS[: KINDS.index("index")]) - INDEXES
"""Kinds of statements that run before the initial load; the other kinds run after it."""


class Statement(NamedTuple):
    """A statement for the target, or an object of the source that has no statement.

    Attributes:
        kind: one of `KINDS`.
        name: the object's name in the source, ``OWNER.NAME``; with the column, if it is about a
            column.
        sql: the SQL for PostgreSQL; empty if there is no translation.
        reason: why the statement cannot run; empty if it can.
        source: the Oracle SQL from which it was translated; empty if there is none.
        present: a query that checks whether the target already has the object; it returns one
            boolean.
        alike: if `present` ignores properties of the object, a query that checks whether these
            properties are also the same.
        what: the kind of object in the source, if it differs from `kind`.
        remark: how the object in the target differs from the source, if the statement can run.
        trial: a query that a trial runs after the statement, to check that the created object
            works.
        calls: names of the routines that the object calls.
        role: the role that gets the privilege of a grant; empty for PUBLIC.
    """

    kind: str
    name: str
    sql: str
    reason: str = ""
    source: str = ""
    present: str = ""
    alike: str = ""
    what: str = ""
    remark: str = ""
    role: str = ""
    trial: str = ""
    calls: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether the statement can run: it has SQL, and no reason against it is known."""
        return bool(self.sql) and not self.reason

    def refused(self, reason: str) -> Statement:
        """Return a copy that cannot run, with this reason."""
        return self._replace(reason=reason)


_log = structlog.get_logger(__name__)

_DEEP: Final = "the SQL is nested too deeply to be translated"


def failure_reason(error: Exception) -> str:
    """Return one line that says where the conversion failed. Log the error with its traceback."""
    if isinstance(error, RecursionError):
        return _DEEP
    _log.error("converting an object of the source failed", exc_info=error)
    place = _place(error.__traceback__)
    return (
        f"olr_pg has a defect ({type(error).__name__} in {place}): report it"
        " with the text of the object"
    )


def _place(calls: TracebackType | None) -> str:
    place = "an unknown place"
    while calls is not None:
        place = f"{Path(calls.tb_frame.f_code.co_filename).name}:{calls.tb_lineno}"
        calls = calls.tb_next
    return place


def each_safely(
    what: str, name: str, source: str, make: Callable[[], Iterable[Statement]]
) -> Iterator[Statement]:
    """Yield the statements of one object. If `make` raises an error, yield a statement without SQL
    whose `reason` describes the error.
    """
    try:
        yield from list(make())
    except Exception as error:  # noqa: BLE001 - one object must not end the command: it is listed
        yield Statement("by hand", name, "", failure_reason(error), source, what=what)


_PLAIN_BACKSLASHES: Final = "SET standard_conforming_strings = on;\n"
"""Makes a backslash in a literal an ordinary character, whatever the role or the database sets."""


def file_texts(statements: Iterable[Statement]) -> dict[str, str]:
    """Return the texts of the files by their names. A kind without statements gets no file."""
    by_kind: dict[str, list[Statement]] = {}
    for one in statements:
        by_kind.setdefault(one.kind, []).append(one)
    return {
        _file_name(kind): _text(kind, found)
        for kind, found in sorted(by_kind.items(), key=lambda item: KINDS.index(item[0]))
    }


def _file_name(kind: str) -> str:
    return f"{KINDS.index(kind) + 1:02}-{_of_file(kind)}.sql"


def _of_file(kind: str) -> str:
    return kind.replace(" ", "-")


def _text(kind: str, statements: Sequence[Statement]) -> str:
    running = sum(one.runs for one in statements)
    left_out = len(statements) - running
    head = (
        f"-- {kind}: {len(statements)}, of which {left_out} are not created (see the comments).\n"
    )
    return head + _PLAIN_BACKSLASHES + "".join("\n" + statement_text(one) for one in statements)


def statement_text(one: Statement) -> str:
    """Return the text of one statement. A statement that cannot run becomes a comment with the
    reason and the source text.

    A name can contain ends of lines. In a comment, ends of lines are written as escapes: otherwise
    psql would execute the rest of the name, also as one of its own commands.
    """
    title = f"{one.what}: {one.name}" if one.what and not one.runs else one.name
    if one.runs:
        remarks = [title, *(text for text in (one.what, one.remark) if text)]
        return f"{_comment(remarks)}{one.sql};\n"
    lines = [f"NOT CREATED: {title}", f"Reason: {one.reason}"]
    if one.sql:
        lines += ["PostgreSQL:", *one.sql.splitlines()]
    if one.source:
        lines += ["Oracle:", *one.source.splitlines()]
    return _comment(lines)


def _comment(lines: Iterable[str]) -> str:
    return "".join(f"-- {one_line(line)}".rstrip() + "\n" for line in lines)


def write_files(statements: Iterable[Statement], folder: Path) -> list[Path]:
    """Write the files, and `all.sql`, a script for psql that runs all of them. Return their paths.

    Raises:
        OSError: the folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = file_texts(statements)
    for kind in KINDS:
        for old in folder.glob(f"[0-9][0-9]-{_of_file(kind)}.sql"):
            if old.name not in texts:  # files of an earlier run, perhaps with other numbers
                remove_plain(old)
    whole = "\\set ON_ERROR_STOP on\n" + "".join(f"\\ir {name}\n" for name in texts)
    for name, text in {**texts, "all.sql": whole}.items():
        with written_whole(folder / name) as file:
            file.write(text.encode())
    return [folder / name for name in (*texts, "all.sql")]
