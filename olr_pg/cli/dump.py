"""``olr-pg dump``: what is in archived logs."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from olr_pg.cli.decode import LogArguments
from olr_pg.cli.output import byte_progress, log_to_stderr, print_json, print_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from olr_pg.redo.header import LogHeader
    from olr_pg.redo.stats import LogStatistics
    from olr_pg.redo.window import Log

_FILE_WIDTH: Final = 400
_TABLE_WIDTH_MIN: Final = 200
_TEXT_COLUMNS: Final = {"file", "compat", "db_name"}


def dump(
    logs: LogArguments,
    *,
    stats: Annotated[
        bool, typer.Option("--stats", help="Print counts and header fields per log instead.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --stats: one JSON object per log and line.")
    ] = False,
) -> None:
    """Print the redo records and change vectors of archived logs, log by log in stream order."""
    if as_json and not stats:
        raise typer.BadParameter("is only there together with --stats", param_hint="--json")
    log_to_stderr()
    if stats:
        _print_statistics(list(_statistics([str(path) for path in logs])), as_json=as_json)
        return
    from olr_pg.redo.dump import dump_log

    for log in _open([str(path) for path in logs]):
        for line in dump_log(log):
            print_line(line)


def statistics_record(log: Log, counts: LogStatistics) -> dict[str, Any]:
    """The header fields and counts of a log, as ``--stats --json`` prints them."""
    header = log.header
    return {
        "file": log.path,
        **_header_fields(header),
        "blocks": counts.blocks,
        "lwns": counts.lwns,
        "records": counts.records,
        "vectors": counts.vectors,
        "opcodes": counts.opcodes,
        "transactions": counts.transactions,
        "rolled_back": counts.rolled_back,
    }


def _header_fields(header: LogHeader) -> dict[str, Any]:
    return {
        "thread": header.thread,
        "sequence": header.sequence,
        "resetlogs": header.resetlogs_id,
        "compat": header.version,
        "dbid": header.dbid,
        "db_name": header.db_name,
        "first_scn": header.first_scn,
        "next_scn": header.next_scn,
    }


def _open(specs: Sequence[str]) -> Iterator[Log]:
    from olr_pg.capture.logs import discover_logs
    from olr_pg.capture.readers import map_log
    from olr_pg.redo.window import Log

    for found in discover_logs(specs):
        yield Log(found.path, found.header, map_log(found.path))


def _statistics(specs: Sequence[str]) -> Iterator[dict[str, Any]]:
    from olr_pg.redo.stats import log_statistics

    opened = list(_open(specs))
    total = sum(log.raw.size for log in opened)
    with byte_progress("reading") as advance:
        done = 0
        for log in opened:
            advance(done, total)
            yield statistics_record(log, log_statistics(log))
            done += log.raw.size


def _print_statistics(records: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        for record in records:
            print_json(record)
        return
    _print_tables(records)


def _print_tables(records: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    # Into a file or pipe, no terminal's width may cut a line.
    console = Console() if sys.stdout.isatty() else Console(width=_FILE_WIDTH)
    wide = console.width >= _TABLE_WIDTH_MIN
    for table in [_wide_table(records)] if wide else map(_narrow_table, records):
        console.print(table)
    opcodes = Counter[str]()
    for record in records:
        opcodes.update(record["opcodes"])
    table = Table("opcode", "vectors")
    table.columns[1].justify = "right"
    for opcode in sorted(opcodes, key=lambda text: tuple(map(int, text.split(".")))):
        table.add_row(opcode, str(opcodes[opcode]))
    console.print(table)


def _wide_table(records: list[dict[str, Any]]) -> Table:
    """One row per log."""
    from rich.table import Table

    columns = [key for key in records[0] if key != "opcodes"]
    table = Table()
    for column in columns:
        table.add_column(column, justify="left" if column in _TEXT_COLUMNS else "right")
    for record in records:
        table.add_row(*(_cell(record[column]) for column in columns))
    return table


def _narrow_table(record: dict[str, Any]) -> Table:
    """One row per field of a log."""
    from rich.table import Table

    table = Table(show_header=False)
    for key, value in record.items():
        if key != "opcodes":
            table.add_row(key, _cell(value))
    return table


def _cell(value: object) -> str:
    return "open" if value is None else str(value)
