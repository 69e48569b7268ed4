"""Shell completion: proposes the names of tables and targets, and the error codes.

The names come from the configuration that the command would read, from the dictionaries that this
configuration names, and from dictionaries that an earlier run has stored in `context.data`.
Completion opens no connection and resolves no secret. If a file cannot be read, no names are
proposed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator  # Typer needs it at run time
from pathlib import Path
from typing import Any

import typer

from olr_pg.cli.usual_file import usual_file
from olr_pg.errors import Code, OlrPgError


def error_codes(incomplete: str) -> Iterator[tuple[str, str]]:
    """Propose the codes of the catalogue with their titles."""
    for code in Code:
        label = f"OLR-{code:05d}"
        if label.startswith(incomplete):
            yield label, code.title


def target_names(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    """Propose the names of the configuration's targets."""
    targets = _configuration(ctx).get("target")
    for target in targets if isinstance(targets, list) else ():
        if str(target.get("name", "")).startswith(incomplete):
            yield str(target["name"])


def table_names(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    """Propose the source's tables."""
    names = {name for path in _dictionaries(ctx) for name in _tables_of(path)}
    yield from sorted(name for name in names if name.startswith(incomplete))


def _configuration(ctx: typer.Context) -> dict[str, Any]:
    """Return the contents of the configuration file without resolving secrets; empty if it cannot
    be read.

    Relative paths in it start at the folder of the file.
    """
    from olr_pg.config.reading import read_values

    path = _file(ctx)
    try:
        values = {} if path is None else read_values(path)
    except OlrPgError:
        return {}
    return values if isinstance(values, dict) else {}


def _file(ctx: typer.Context) -> Path | None:
    named = ctx.params.get("config") or os.environ.get("OLR_PG_CONFIG")
    try:
        return Path(named) if named else usual_file()
    except OlrPgError:
        return None


def _dictionaries(ctx: typer.Context) -> Iterable[Path]:
    """Return the files that may contain the source's dictionary."""
    from olr_pg.config.model import DATA

    if ctx.params.get("dictionary"):  # an option of `decode`
        return map(Path, ctx.params["dictionary"])
    values, folder = _configuration(ctx), (_file(ctx) or Path()).parent
    named = _section(values, "source").get("dictionary", [])
    data = str(_section(values, "context").get("data", DATA))
    found = [named] if isinstance(named, str) else named
    return [folder / str(one) for one in (*found, f"{data}/dictionary.json")]


def _section(values: dict[str, Any], name: str) -> dict[str, Any]:
    found = values.get(name)
    return found if isinstance(found, dict) else {}


def _tables_of(path: Path) -> list[str]:
    from olr_pg.dictionary.loader import load_snapshot

    try:
        return [table.full_name for table in load_snapshot(str(path)).tables]
    except (OlrPgError, OSError, json.JSONDecodeError):
        return []
