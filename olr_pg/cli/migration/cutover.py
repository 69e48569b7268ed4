"""``olr-pg cutover``: from the last change of the source to a target that applications can use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from olr_pg.cli.config import ConfigOption, TargetOption
from olr_pg.cli.group import advised
from olr_pg.cli.printing import print_json, print_line
from olr_pg.cli.shared_options import (
    AcceptOption,
    FallbackOption,
    JsonOption,
    read_config,
    spark_session_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.config.model import Config
    from olr_pg.load.cutover.cut_over import CutOverStep
    from olr_pg.load.cutover_steps import StepState


def cutover(
    config: ConfigOption,
    *,
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables",
            metavar="DIR",
            help="The directory with the source's rows as of the last SCN (offline source only).",
        ),
    ] = None,
    dictionary: Annotated[
        list[Path] | None,
        typer.Option(
            "--dictionary",
            metavar="FILE",
            help="The dictionary exported at the end, for the positions of the sequences"
            " (offline source only). With several containers, give one file for each, or"
            " the FILE of their common export.",
        ),
    ] = None,
    final_scn: Annotated[
        int | None,
        typer.Option(
            "--final-scn",
            min=1,
            help="The last SCN of the source (offline source only). Default: the end of its logs.",
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="STEP", help="Stop after this step.")
    ] = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Do not compare the tables.")
    ] = False,
    accept: AcceptOption = None,
    fallback: FallbackOption = False,
    restart: Annotated[
        bool,
        typer.Option("--restart", help="Forget the completed steps and start from the beginning."),
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Only show the progress of the cut-over.")
    ] = False,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cut over to the target, step by step. Run the command again to continue where it stopped.

    The steps: quiet, archived, applied, verified, sequences, constraints, report. Stop `olr-pg run`
    first: this command applies the remaining changes itself. The command changes nothing in the
    source, except with --fallback: this option adds the step `fallback` before the report. The step
    prepares `olr-pg fallback run`, which replicates back to the source.
    """
    from olr_pg.load.cutover.cut_over import CutoverOptions, cut_over, restart_cutover, steps_of
    from olr_pg.spark.session import stop_session

    names = [step.name for step in steps_of(fallback=fallback)]
    if until is not None and until not in names:
        raise typer.BadParameter(f"--until must be one of {', '.join(names)}")
    loaded = read_config(config, target_name)
    if restart:
        restart_cutover(loaded)
    options = CutoverOptions(
        tables=tables,
        dictionary=dictionary or (),
        final_scn=final_scn,
        unverified=unverified,
        accept=accept or (),
        until=until,
        fallback=fallback,
        progress=(lambda _: None) if as_json else announce,
    )
    try:
        if not status:
            cut_over(loaded, lambda: spark_session_of(loaded), options)
    finally:
        stop_session()
        show_cutover(loaded, as_json=as_json)


def show_cutover(config: Config, *, as_json: bool) -> None:
    """Show the progress of the cut-over."""
    from olr_pg.load.cutover.cut_over import WAY_BACK, cutover_state, steps_of

    states = cutover_state(config)
    has_way_back = any(state.step == WAY_BACK.name for state in states)
    _show(states, steps_of(fallback=has_way_back), as_json=as_json)


def announce(step: CutOverStep) -> None:
    """Print that a step begins."""
    from olr_pg.load.cutover.step_lines import begin_line

    print_line(begin_line(step.name, step.title), at_once=True)


def _show(states: Sequence[StepState], steps: Sequence[CutOverStep], *, as_json: bool) -> None:
    """Show which steps are done, and how to return to the source."""
    over = [state for state in states if state.is_over]
    backs = {step.name: step.way_back for step in steps}
    back = backs[over[-1].step] if over else "nothing is done yet"
    if as_json:
        finished = len(over) == len(steps)
        listed = [_step_json(state) for state in states]
        print_json({"finished": finished, "way_back": back, "steps": listed})
        return
    from olr_pg.load.cutover.step_lines import grant_lines, step_lines

    for line in step_lines(states, steps):
        print_line(line)
    print_line(
        advised(f"To go back: {back}.")
        if over
        else "No step is done yet, so there is nothing to undo."
    )
    if len(over) == len(steps):
        print_line(
            f"The cut-over ended at {over[-1].finished_at:%Y-%m-%d %H:%M:%S %Z}. From then on,"
            " applications can use the target. Do not start olr-pg run again."
        )
        has_way_back = any(step.name == "fallback" for step in steps)
        print_line(
            advised(
                "Start `olr-pg fallback run` and leave it running."
                if has_way_back
                else "If applications have used the source since then, cut over again with"
                " `olr-pg cutover --restart`."
            )
        )
        grants = grant_lines(states)
        if grants:
            print_line(
                "Grant the missing privileges to the role of the applications (called"
                " `application` here):"
            )
        for line in grants:
            print_line(f"    {line}")


def _step_json(state: StepState) -> dict[str, Any]:
    end = state.finished_at
    return {
        **state._asdict(),
        "started_at": state.started_at.isoformat(),
        "finished_at": None if end is None else end.isoformat(),
    }
