"""``olr-pg logs``: lists the archived logs, and which of them can be deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from olr_pg.cli.config import ConfigOption
from olr_pg.cli.printing import log_to_stderr, print_json, print_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.appliance.log_needs import JudgedLog

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

    It works with and without a running appliance. If in doubt, a log counts as needed.
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
        _print(judged)


def _as_json(judged: JudgedLog) -> dict[str, object]:
    return {**judged.log._asdict(), "needed": judged.needed, "why": judged.why}


def _print(judged: Sequence[JudgedLog]) -> None:
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
