"""``olr-pg status``: how the running appliance is."""

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
from olr_pg.observability.wording import span

if TYPE_CHECKING:
    from rich.console import Console

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
            help="Ask /healthz only: exit code 0 unless decoding has ended, or none runs.",
        ),
    ] = False,
    certificate: Annotated[
        Path | None,
        typer.Option(help="A client certificate (PEM), where `status.tls.client-ca` wants one."),
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key (PEM).")] = None,
) -> None:
    """Show what the running appliance does: positions, lag, queue, tables, problems."""
    from olr_pg.config.reading import load_config, one_target
    from olr_pg.monitor.asking import ask_status

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
    console = report_console(highlight=False, markup=False)
    targets = record.get("targets")
    for one in targets.values() if isinstance(targets, dict) else [record]:
        if one.get("target"):
            console.print(f"Target {one['target']}", style="bold")
        _print(console, one)


def _print(console: Console, record: dict[str, Any]) -> None:
    state, source, port = record["state"], record["source"], record["port"]
    seconds = record["at"] - state["since"]
    console.print(f"{record['health'].upper()}: {state['name']} for {span(seconds)}")
    for problem in record["problems"]:
        console.print(f"  ! {problem}", style="bold red")
    facts = {
        "Positions (SCN)": (
            f"decoded below {source['decoded_scn']}, taken below {port['taken_scn']},"
            f" confirmed {record['confirmed_scn']}, restart from {port['saved_scn']}"
        ),
        "Newest redo": span(record["archive_seconds"]) + " ago",
        "Open transactions": f"{source['open_transactions']:,}"
        + (
            f", the oldest {source['oldest_open_xid']} for {span(source['oldest_open_seconds'])}"
            if source["oldest_open_xid"]
            else ""
        ),
        "Ready queue": (
            f"{port['ready']:,} ready, {port['transmitted']:,} to be confirmed,"
            f" {port['queued_bytes'] / 2**20:.1f} of {port['bytes_max'] / 2**20:.0f} MiB"
        ),
        "Client": f"{port['client'] or 'none'} on {port['address']}",
        "Rates": (
            f"{record['rates']['redo_bytes'] / 2**20:.1f} MiB/s of redo,"
            f" {record['rates']['decoded_rows']:,.0f} rows/s decoded,"
            f" {record['rates']['applied_changes']:,.0f} changes/s applied"
        ),
        "Left out": _left_out(source),
        "Process": (
            f"{record['process']['pid']}, {record['process']['resident_bytes'] / 2**20:,.0f} MiB,"
            f" {record['process']['threads']} threads,"
            f" {record['process']['descriptors']} descriptors"
        ),
    }
    for name, value in facts.items():
        if value:
            console.print(f"{name + ':':19}{value}", soft_wrap=True)
    for thread in source["threads"]:
        console.print(
            f"Thread {thread['thread']}: redo to sequence {thread['archived_sequence']}, written"
            f" {span(record['at'] - thread['archived_at'])} ago;"
            f" decoded to {thread['decoded_sequence'] or 'none'}"
            + (", others wait for it" if thread["holds_back"] else "")
        )
    if record["tables"]:
        numbers = ("Lag", *_CAUSES, "Waiting", "Applied", "")
        grid = report_table("Table", numbers=numbers, box=None)
        for table in record["tables"]:
            applied = table["inserted"] + table["updated"] + table["deleted"]
            grid.add_row(
                table["name"],
                span(table["lag_seconds"]),
                *(span(table["lag"][cause]) for cause in _CAUSES),
                f"{table['waiting']:,}",
                f"{applied:,}",
                _stopped(table),
            )
        print_table(console, grid)


def _left_out(source: dict[str, Any]) -> str:
    """Say what was decoded and is not delivered; empty where that is nothing."""
    counts = {
        "rows by the filter": source["rows_filtered"],
        "whole transactions by the filter": source["transactions_filtered"],
        "LOB values that the redo does not hold whole": source["lob_unavailable"],
        "LOBs changed without their rows": source["lob_unclaimed"],
    }
    return ", ".join(f"{count:,} {words}" for words, count in counts.items() if count)


def _stopped(table: dict[str, Any]) -> str:
    if table.get("paused"):
        return f"paused at SCN {table['held_scn']}" if table["held_scn"] else "paused"
    if not table["stopped"]:
        return f"lacks {table['incomplete']:,} LOB values" if table["incomplete"] else ""
    return f"STOPPED at SCN {table['held_scn']}" if table["held_scn"] else "STOPPED"
