"""``olr-pg prove``: runs SQL scenarios in the source database, and checks that they are decoded
correctly.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from olr_pg.cli.config import LateConfigOption, TargetOption
from olr_pg.cli.printing import on_terminal, print_json, print_line
from olr_pg.cli.shared_options import JsonOption, read_config, spark_session_of, usual_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def prove(
    config: LateConfigOption,
    *,
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario",
            metavar="PATTERN",
            help="Run only the scenarios whose names match, such as types/dates or 'lobs/*';"
            " repeatable.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="The directory for the results, the page and the incident files. Default:"
            " `prove` in `context.data`.",
        ),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Keep the target tables and the working files of the last scenario."
        ),
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="Only print the scenarios and the purpose of each.")
    ] = False,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check on your source database that each form of change is read correctly.

    The command runs SQL scenarios in a scratch schema (section `prove` of the configuration; a DBA
    creates the schema with sql/oracle/prove.sql) and decodes their redo. The command checks the
    decoded changes in three ways. First, the initial rows plus the decoded changes must equal the
    rows at each commit, as flashback queries return them. Second, LogMiner must show the same
    changes, if the account can use it. Third, initial-load, run and verify must end with identical
    tables, in a separate schema in the configured or embedded PostgreSQL.

    The command writes nothing outside these two schemas, and removes what it has created. If the
    command was killed, the next start removes the rest. An interrupted run continues with the next
    scenario. Exit code 1 if anything differs.
    """
    from olr_pg.appliance.target import data_directory
    from olr_pg.proving.prove_run import FOLDER, PAGE, ProveOptions, chosen_scenarios
    from olr_pg.proving.prove_run import prove as run
    from olr_pg.proving.report_page import text_lines
    from olr_pg.spark.session import stop_session

    if listed:
        for one in chosen_scenarios(scenario or ()):
            print_line(f"{one.name}: {one.purpose}")
        return
    loaded = read_config(config or usual_file(), target_name)
    options = ProveOptions(
        scenario or (), (out or data_directory(loaded) / FOLDER).absolute(), keep
    )
    try:
        with _progress() as progress:
            proof = run(loaded, options, lambda: spark_session_of(loaded), progress)
    finally:
        stop_session()
    if as_json:
        print_json(proof.as_json())
    else:
        for line in text_lines(proof):
            print_line(line)
        print_line(f"page: {options.out / PAGE}")
    raise typer.Exit(1 if proof.differs else 0)


@contextmanager
def _progress() -> Iterator[Callable[[int, int, str], None]]:
    """Show the progress on stderr, if stderr is a terminal."""
    if not on_terminal():
        yield lambda _done, _all, _name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, name: bar.update(
            task, completed=done, total=total, description=name
        )
