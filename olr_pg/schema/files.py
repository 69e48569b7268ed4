"""Writes the converted statements as SQL files: one file for each kind of object, in the order in
which they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.files.owned import remove_plain, written_whole
from olr_pg.observability.wording import one_line
from olr_pg.schema.statement import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from olr_pg.schema.statement import Statement


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

    A name can contain ends of lines. In a comment they are written as escapes: otherwise psql would
    execute the rest of the name, also as one of its own commands.
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
