"""``olr-pg fallback``: the way back from PostgreSQL to Oracle after the cut-over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from olr_pg.cli.config import ConfigOption, TargetOption
from olr_pg.cli.printing import print_json, print_line
from olr_pg.cli.shared_options import JsonOption, read_config

if TYPE_CHECKING:
    from olr_pg.config.model import Config
    from olr_pg.fallback.value_report import TableReport

EXIT_REFUSED: Final = 1

app = typer.Typer(help="The way back to Oracle after the cut-over.", no_args_is_help=True)


@app.callback()
def fallback() -> None:
    """Bring what PostgreSQL commits after the cut-over into Oracle."""


@app.command("report")
def report(
    config: ConfigOption,
    *,
    no_count: Annotated[
        bool, typer.Option("--no-count", help="Read no rows: only what could occur.")
    ] = False,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report which values cannot go back to Oracle, before the cut-over.

    By column: what does not fit, the policy that would act, and in how many rows of today. Changes
    nothing. Exit code 1 if a value would be refused.
    """
    from olr_pg.fallback.value_report import report_json, report_lines

    tables = _reports(read_config(config, target_name), count=not no_count)
    if as_json:
        print_json(report_json(tables))
    else:
        for line in report_lines(tables):
            print_line(line)
    if not all(table.is_ready for table in tables):
        raise typer.Exit(EXIT_REFUSED)


def _reports(config: Config, *, count: bool) -> list[TableReport]:
    from olr_pg.appliance.opened_target import opened_target
    from olr_pg.errors import Code, OlrPgError
    from olr_pg.fallback.oracle_values import ValueSettings
    from olr_pg.fallback.value_report import report_values
    from olr_pg.load import sources

    if config.fallback is None:
        raise OlrPgError(Code.NO_WAY_BACK, "there is no `fallback` section", key="fallback")
    section = sources.apply_section(config)
    with (
        opened_target(config, ledger=False) as (connection, target),
        sources.open_tables(config) as source,
    ):
        settings = sources.target_settings(config, source.snapshot, target)
        values = ValueSettings.of(config.fallback.policies, section, source.snapshot.database)
        chosen = source.choose(())
        return list(report_values(connection, chosen, settings, values, count=count))
