"""``olr-pg status`` shows the state of the running appliance. ``olr-pg logs`` lists the archived
logs, and which of them can be deleted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from olr_pg.cli.config import ConfigOption, TargetOption
from olr_pg.cli.printing import (
    log_to_stderr,
    print_json,
    print_line,
    print_table,
    report_console,
    report_table,
)
from olr_pg.observability.wording import counted, span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from olr_pg.appliance.log_needs import JudgedLog

_CAUSES: Final = ("reading", "decoding", "queue", "apply")

_TABLES_MAX: Final = 200
"""The number of tables that are printed, as on the status page."""


def status(
    config: ConfigOption,
    *,
    target_name: TargetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Request only /healthz. Exit code 0 if the appliance runs and decoding has not"
            " ended.",
        ),
    ] = False,
    certificate: Annotated[
        Path | None,
        typer.Option(help="A client certificate (PEM), if `status.tls.client-ca` requires one."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="The private key of --certificate (PEM).")
    ] = None,
) -> None:
    """Show what the running appliance does: positions, lag, queue, tables, problems."""
    from olr_pg.config.reading import load_config, one_target
    from olr_pg.monitor.status_client import ask_status

    loaded = load_config(config, secrets=False)  # the status page needs none
    page = "healthz" if check else "status.json"
    if target_name is not None:
        page += f"?target={one_target(loaded, target_name).name}"
    record = ask_status(loaded, certificate, key, page=page)
    if check:
        print_line(record["health"])
        return
    if as_json:
        print_json(record)
        return
    console = report_console(highlight=False)
    targets = record.get("targets")
    for one in targets.values() if isinstance(targets, dict) else [record]:
        if one.get("target"):
            console.print(f"Target {one['target']}", style="bold")
        _print(console, one)


def _print(console: Console, record: dict[str, Any]) -> None:
    state = record["state"]
    words = f"{state['words']} ({state['name']})"
    console.print(
        f"{record['health'].upper()}: {words} for {span(record['at'] - state['since'])}",
        soft_wrap=True,
    )
    for number, problem in enumerate(record["problems"]):
        console.print(f"  ! {problem}", style="bold red", soft_wrap=True)
        for command in record["commands"][number]:
            console.print(f"      {command}", soft_wrap=True)
    for name, value in {**_whereabouts(record), **_amounts(record)}.items():
        if value:
            console.print(f"{name + ':':19}{value}", soft_wrap=True)
    for thread in record["source"]["threads"]:
        console.print(_thread(thread, record["at"]), soft_wrap=True)
    loads = sorted(record["loads"], key=lambda one: not (one["parts_done"] or one["rows"]))
    for load in loads[:_TABLES_MAX]:
        console.print(_load(load), soft_wrap=True)
    if len(loads) > _TABLES_MAX:
        waiting = counted(len(loads) - _TABLES_MAX, "more load")
        console.print(f"{waiting} in progress or waiting: --json shows all of them", soft_wrap=True)
    if record["tables"]:
        print_table(console, _tables(record))
    more = len(record["tables"]) - _TABLES_MAX
    if more > 0:
        console.print(f"{counted(more, 'more table')}: --json shows all of them", soft_wrap=True)


def _whereabouts(record: dict[str, Any]) -> dict[str, str]:
    """Return the source, the target and the positions of replication as texts."""
    identity, source, port = record["identity"], record["source"], record["port"]
    places = (identity["source"], identity["container"], identity["source_place"])
    age = record["archive_seconds"]
    oldest = source["oldest_open_xid"]
    confirmed = f" confirmed {_scn(record['confirmed_scn'])}," if identity["target"] else ""
    return {
        "Source": ", ".join(filter(None, places)),
        "Target": identity["target"],
        "Positions (SCN)": (
            f"commits decoded below {_scn(source['decoded_scn'])}, sent to the client below"
            f" {_scn(port['taken_scn'])},{confirmed} restart from {_scn(port['saved_scn'])}"
        ),
        "Newest redo": "none yet" if age is None else f"{span(age)} ago",
        "Open transactions": f"{source['open_transactions']:,}"
        + (
            f", the oldest ({oldest}) open for {span(source['oldest_open_seconds'])}"
            if oldest
            else ""
        ),
    }


def _amounts(record: dict[str, Any]) -> dict[str, str]:
    """Return the amounts of waiting data, the rates, and the resources of the process as texts."""
    port, rates, process = record["port"], record["rates"], record["process"]
    bound = f" of {port['bytes_max'] / 2**20:.0f}" if port["bytes_max"] else ""
    return {
        "Ready queue": (
            f"{port['ready']:,} ready, {port['transmitted']:,} not confirmed,"
            f" {port['queued_bytes'] / 2**20:.1f}{bound} MiB"
        ),
        "Client": f"{port['client'] or 'none'}, port {port['address']}",
        "Rates": (
            f"{rates['redo_bytes'] / 2**20:.1f} MiB/s of redo,"
            f" {rates['decoded_rows']:,.0f} rows/s decoded,"
            f" {rates['applied_changes']:,.0f} changes/s applied"
        ),
        "Not delivered": _left_out(record["source"]),
        "Process": (
            f"{process['pid']}, {_mib(process['resident_bytes'])} MiB,"
            f" {process['threads']} threads,"
            f" {_known(process['descriptors'])} descriptors"
        ),
    }


def _mib(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 2**20:,.0f}"


def _known(count: int | None) -> str:
    return "unknown" if count is None else str(count)


def _scn(position: int | None) -> str:
    """Format an SCN; “none yet” if unknown."""
    return str(position) if position else "none yet"


def _thread(thread: dict[str, Any], at: float) -> str:
    return (
        f"Thread {thread['thread']}: redo available up to sequence"
        f" {thread['archived_sequence']}, written {span(at - thread['archived_at'])} ago;"
        f" decoded up to sequence {thread['decoded_sequence'] or 'none yet'}"
        + (", other threads wait for it" if thread["holds_back"] else "")
    )


def _load(load: dict[str, Any]) -> str:
    if not load["parts"]:
        return f"Another tool copies the rows of {load['table']} as of SCN {load['scn']}"
    parts = f"{load['parts_done']} of {counted(load['parts'], 'part')}"
    return (
        f"Loading {load['table']}: {parts}, {counted(load['rows'], 'row')} as of SCN {load['scn']}"
    )


def _tables(record: dict[str, Any]) -> Table:
    grid = report_table("Table", numbers=("Lag", *_CAUSES, "Waiting", "Applied", ""), box=None)
    tables = record["tables"]
    if len(tables) > _TABLES_MAX:
        tables = sorted(tables, key=_rank)[:_TABLES_MAX]
    for table in tables:
        applied = table["inserted"] + table["updated"] + table["deleted"]
        total, lag = table["lag_seconds"], table["lag"]  # None means unknown
        grid.add_row(
            table["name"],
            "unknown" if total is None else span(total),
            *("–" if lag is None else span(lag[cause]) for cause in _CAUSES),
            f"{table['waiting']:,}",
            f"{applied:,}",
            _stopped(table, record["at"]),
        )
    return grid


def _rank(table: dict[str, Any]) -> tuple[bool, bool, float, int, int]:
    """Return the sort key of a table: first stopped tables, then those with another problem, then
    by lag, by waiting changes, and by applied changes.
    """
    problems = table["paused"], table["blocked"], table["incomplete"], table["differences"]
    applied = table["inserted"] + table["updated"] + table["deleted"]
    lag = -(table["lag_seconds"] or 0)
    return not table["stopped"], not any(problems), lag, -table["waiting"], -applied


def _left_out(source: dict[str, Any]) -> str:
    """Describe the decoded changes and values that are not delivered; empty if there are none."""
    counts = {
        "rows excluded by the filter": source["rows_filtered"],
        "transactions excluded by the filter": source["transactions_filtered"],
        "incomplete LOB values in the redo": source["lob_unavailable"],
        "LOB values changed without a row change": source["lob_unclaimed"],
    }
    return ", ".join(f"{count:,} {words}" for words, count in counts.items() if count)


def _verified(table: dict[str, Any], at: float) -> str:
    """Describe when the table was last found equal to the source's table, if it ever was."""
    if table.get("verified_at") is None:
        return ""
    said = counted(table["differences"], "row") + " DIFFER" if table["differences"] else "equal"
    as_of = f" as of SCN {table['verified_scn']}" if table["verified_scn"] else ""
    return f"{said}{as_of}, {span(at - table['verified_at'])} ago"


def _stopped(table: dict[str, Any], at: float) -> str:
    if table.get("paused"):
        return f"paused at SCN {table['held_scn']}" if table["held_scn"] else "paused"
    if not table["stopped"]:
        if table.get("blocked"):
            return "BLOCKED in PostgreSQL"
        if table.get("behind"):
            return f"waits for {table['behind']}"
        if table["incomplete"]:
            return f"lacks {counted(table['incomplete'], 'LOB value')}"
        return _verified(table, at)
    return f"STOPPED at SCN {table['held_scn']}" if table["held_scn"] else "STOPPED"


_LINE: Final = "{:>6} {:>9} {:>16} {:>16}  {:<9}  {}{}"


def logs(
    config: ConfigOption,
    *,
    purgeable: Annotated[
        bool,
        typer.Option(
            "--purgeable",
            help="Print only the logs that no restart needs any more: one name per line, as"
            " the source names them.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """List the archived logs: thread, sequence, SCNs, and whether a start may need them.

    The command works with and without a running appliance. If in doubt, a log counts as needed.
    """
    from olr_pg.appliance.encryption import row_key
    from olr_pg.appliance.log_needs import choose_needed, in_vault, known_logs, positions
    from olr_pg.config.reading import load_config
    from olr_pg.config.source_section import OfflineSource
    from olr_pg.files.sealed import sealing

    log_to_stderr()
    loaded = load_config(config)
    vault = None if isinstance(loaded.source, OfflineSource) else loaded.source.vault
    starts = positions(loaded)
    # List the logs after the positions are read. A log that is archived between the two then lies
    # after all positions, so it counts as needed.
    logs_known = known_logs(loaded)
    with sealing(row_key(loaded)):
        judged = choose_needed(logs_known, starts, in_vault(vault))
    if purgeable:
        judged = [one for one in judged if not one.needed]
    if as_json:
        targets = [{"target": one.target, "start_scn": one.scn, "why": one.why} for one in starts]
        print_json({"targets": targets, "logs": [_as_json(one) for one in judged]})
    elif purgeable:
        for one in judged:
            print_line(one.log.name)
    else:
        _print_purgeable(judged)


def _as_json(judged: JudgedLog) -> dict[str, object]:
    return {**judged.log._asdict(), "needed": judged.needed, "why": judged.why}


def _print_purgeable(judged: Sequence[JudgedLog]) -> None:
    """Print one line per log; the lines are not wrapped, so that `grep` works on them."""
    if not judged:
        print_line("no archived log was found")
        return
    print_line(_LINE.format("THREAD", "SEQUENCE", "FIRST SCN", "NEXT SCN", "", "NAME", ""))
    before = ""
    for log, needed, why in judged:
        state = "needed" if needed else "purgeable"
        numbers = (log.thread, log.sequence, log.first_scn, log.next_scn)
        # An error is long, and the same for many logs: print it only for the first of them.
        words = "for the same reason" if why == before and why.startswith("OLR-") else why
        print_line(_LINE.format(*numbers, state, log.name, f"  ({words})"))
        before = why
