"""``olr-pg status``: shows the state of the running appliance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from olr_pg.cli.config import ConfigOption, TargetOption
from olr_pg.cli.printing import (
    print_json,
    print_line,
    print_table,
    report_console,
    report_table,
)
from olr_pg.observability.wording import counted, span

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_CAUSES: Final = ("reading", "decoding", "queue", "apply")


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

    loaded = load_config(config)
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
    for load in record["loads"]:
        console.print(_load(load), soft_wrap=True)
    if record["tables"]:
        print_table(console, _tables(record))


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
            f"{process['pid']}, {process['resident_bytes'] / 2**20:,.0f} MiB,"
            f" {process['threads']} threads, {process['descriptors']} descriptors"
        ),
    }


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
    parts = f"{load['parts_done']} of {counted(load['parts'], 'part')}"
    return (
        f"Loading {load['table']}: {parts}, {counted(load['rows'], 'row')} as of SCN {load['scn']}"
    )


def _tables(record: dict[str, Any]) -> Table:
    grid = report_table("Table", numbers=("Lag", *_CAUSES, "Waiting", "Applied", ""), box=None)
    for table in record["tables"]:
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
            return f"lacks {table['incomplete']:,} LOB values"
        return _verified(table, at)
    return f"STOPPED at SCN {table['held_scn']}" if table["held_scn"] else "STOPPED"
