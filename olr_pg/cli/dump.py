"""``olr-pg dump``: prints the contents of archived logs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from olr_pg.cli.decode import parse_log
from olr_pg.cli.printing import byte_progress, log_to_stderr, print_json, print_line, report_console
from olr_pg.errors import Code, OlrPgError, system_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.table import Table

    from olr_pg.redo.dump.log_text import DumpFilter
    from olr_pg.redo.dump.stats import LogStatistics
    from olr_pg.redo.window import Log

T = TypeVar("T")

_TABLE_WIDTH_MIN: Final = 200
_TEXT_COLUMNS: Final = {"file", "compat", "db_name"}


def dump(
    logs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="LOG", help="Archived logs: files, directories or globs.", parser=parse_log
        ),
    ] = None,
    *,
    incident: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Print this incident file instead of archived logs."),
    ] = None,
    mask: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --incident: write a copy to this new file. In the copy, random bytes"
            " replace all column values and texts, so that you can share it.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --incident: the configuration that contains the key, if the incident"
            " file is encrypted.",
        ),
    ] = None,
    stats: Annotated[
        bool,
        typer.Option(
            "--stats", help="Print the header fields and the counts of each log instead of records."
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="With --stats: print one line with a JSON object for each log."
        ),
    ] = False,
    scn: Annotated[
        str | None,
        typer.Option(
            metavar="FROM..TO",
            help="Print only records of this range of SCNs. FROM or TO may be omitted.",
        ),
    ] = None,
    rba: Annotated[
        str | None,
        typer.Option(
            metavar="SEQ.BLOCK.OFFSET",
            help="Print only the record that contains this redo byte address (hexadecimal"
            " with 0x).",
        ),
    ] = None,
    xid: Annotated[
        str | None,
        typer.Option(metavar="USN.SLOT.SEQ", help="Print only records of this transaction."),
    ] = None,
    objects: Annotated[
        list[int] | None,
        typer.Option(
            "--object",
            metavar="NUMBER",
            help="Print only records of this object number or data object number; repeatable.",
        ),
    ] = None,
    opcodes: Annotated[
        list[str] | None,
        typer.Option(
            "--opcode",
            metavar="LAYER.CODE",
            help="Print only records that contain a change vector with this operation code;"
            " repeatable.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Maximum number of printed records.")
    ] = None,
    raw: Annotated[bool, typer.Option("--hex", help="Also print the records' bytes.")] = False,
) -> None:
    """Print redo records and change vectors of archived logs in stream order, or of an incident.

    If you give several conditions, a record must meet all of them. A matching record is printed
    whole.
    """
    if as_json and not stats:
        raise typer.BadParameter("requires --stats", param_hint="--json")
    if logs and incident is not None:
        raise typer.BadParameter(
            "name archived logs or use --incident, not both", param_hint="LOG..."
        )
    if not logs and incident is None:
        raise typer.BadParameter("name an archived log, or use --incident", param_hint="LOG...")
    if incident is not None and stats:
        raise typer.BadParameter("an incident file has no statistics", param_hint="--stats")
    if mask is not None and incident is None:
        raise typer.BadParameter("requires --incident", param_hint="--mask")
    if config is not None and incident is None:
        raise typer.BadParameter("requires --incident", param_hint="--config")
    wanted = _filter(scn, rba, xid, objects, opcodes, limit)
    log_to_stderr()
    if incident is not None:
        _dump_incident(incident, _incident_bytes(incident, config), mask, wanted, raw=raw)
        return
    paths = [str(path) for path in logs or ()]
    if stats:
        _print_statistics(list(_statistics(paths)), as_json=as_json)
        return
    from olr_pg.decoding.joined_logs import stored_windows
    from olr_pg.redo.dump.log_text import dump_logs

    for line in dump_logs(_open(paths), wanted, raw=raw, windows=stored_windows):
        print_line(line)


def _incident_bytes(path: Path, config: Path | None) -> bytes:
    """Read an incident file, which can be encrypted."""
    from olr_pg.files.sealed import SealedReader, is_sealed, sealing

    try:
        if not is_sealed(path):
            return path.read_bytes()
        if config is None:
            raise OlrPgError(
                Code.ENCRYPTION_KEY_MISSING,
                "the incident file is encrypted",
                action="name the configuration that contains its key: --config FILE",
                file=str(path),
            )
        from olr_pg.appliance.encryption import row_key
        from olr_pg.config.reading import load_config

        with sealing(row_key(load_config(config))), SealedReader(path) as sealed:
            return sealed.read(0, sealed.size)
    except OSError as error:
        raise OlrPgError(Code.LOG_UNREADABLE, system_reason(error), file=str(path)) from error


def _dump_incident(
    path: Path, content: bytes, mask: Path | None, wanted: DumpFilter, *, raw: bool
) -> None:
    import secrets

    from olr_pg.files.durable import removed_on_failure
    from olr_pg.redo.dump.incident import (
        dump_incident,
        mask_incident,
        read_incident,
        write_incident,
    )

    incident = read_incident(content, path=str(path))
    if mask is None:
        for line in dump_incident(incident, wanted, raw=raw):
            print_line(line)
        return
    masked = write_incident(mask_incident(incident, secrets.token_bytes))
    try:
        with mask.open("xb") as target, removed_on_failure(mask):
            target.write(masked)
            target.flush()
    except OSError as error:
        raise OlrPgError(
            Code.MASKED_INCIDENT_UNWRITABLE, system_reason(error), file=str(mask)
        ) from error


def _filter(
    scn: str | None,
    rba: str | None,
    xid: str | None,
    objects: Sequence[int] | None,
    opcodes: Sequence[str] | None,
    limit: int | None,
) -> DumpFilter:
    from olr_pg.redo.dump.log_text import DumpFilter
    from olr_pg.scalars import parse_rba, parse_xid

    scn_from, scn_to = (0, None) if scn is None else _parsed("--scn", _scn_range, scn)
    return DumpFilter(
        scn_from=scn_from,
        scn_to=scn_to,
        rba=None if rba is None else _parsed("--rba", parse_rba, rba),
        xid=None if xid is None else _parsed("--xid", parse_xid, xid),
        objects=frozenset(objects or ()),
        opcodes=frozenset(_parsed("--opcode", _opcode, text) for text in opcodes or ()),
        limit=limit,
    )


def _parsed(option: str, parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _scn_range(text: str) -> tuple[int, int | None]:
    low, dots, high = text.partition("..")
    try:
        first = int(low or "0", 0)
        return first, (int(high, 0) if high else None) if dots else first
    except ValueError:
        raise ValueError(f"not an SCN or range of SCNs (FROM..TO): {text!r}") from None


def _opcode(text: str) -> int:
    layer, dot, code = text.partition(".")
    if not (dot and layer.isdecimal() and code.isdecimal() and max(int(layer), int(code)) < 256):
        raise ValueError(f"not an opcode (LAYER.CODE): {text!r}")
    return int(layer) << 8 | int(code)


def statistics_record(log: Log, counts: LogStatistics) -> dict[str, Any]:
    """Return the header fields and counts of a log, as ``--stats --json`` prints them."""
    header = log.header
    return {
        "file": log.path,
        "thread": header.thread,
        "sequence": header.sequence,
        "resetlogs": header.resetlogs_id,
        "compat": header.version,
        "dbid": header.dbid,
        "db_name": header.db_name,
        "first_scn": header.first_scn,
        "next_scn": header.next_scn,
        "blocks": counts.blocks,
        "lwns": counts.lwns,
        "records": counts.records,
        "vectors": counts.vectors,
        "opcodes": counts.opcodes,
        "transactions": counts.transactions,
        "rolled_back": counts.rolled_back,
    }


def _open(specs: Sequence[str]) -> Iterator[Log]:
    from olr_pg.capture.logs import discover_logs
    from olr_pg.decoding.joined_logs import unread_log

    for found in discover_logs(specs):
        yield unread_log(found.path, found.header, found.size)


def _statistics(specs: Sequence[str]) -> Iterator[dict[str, Any]]:
    from olr_pg.decoding.joined_logs import stored_windows
    from olr_pg.redo.dump.stats import log_statistics

    opened = list(_open(specs))
    total = sum(log.raw.size for log in opened)
    with byte_progress("reading") as advance:
        done = 0
        for log in opened:
            advance(done, total)
            yield statistics_record(log, log_statistics(log, stored_windows))
            done += log.raw.size


def _print_statistics(records: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        for record in records:
            print_json(record)
        return
    _print_tables(records)


def _print_tables(records: list[dict[str, Any]]) -> None:
    from rich.table import Table

    console = report_console()
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
    """Make a table with one row per log."""
    from rich.table import Table

    columns = [key for key in records[0] if key != "opcodes"]
    table = Table()
    for column in columns:
        table.add_column(column, justify="left" if column in _TEXT_COLUMNS else "right")
    for record in records:
        table.add_row(*(_cell(record[column]) for column in columns))
    return table


def _narrow_table(record: dict[str, Any]) -> Table:
    """Make a table with one row per field of a log."""
    from rich.table import Table

    table = Table(show_header=False)
    for key, value in record.items():
        if key != "opcodes":
            table.add_row(key, _cell(value))
    return table


def _cell(value: object) -> str:
    return "open" if value is None else str(value)
