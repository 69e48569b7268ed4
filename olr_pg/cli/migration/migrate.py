"""``olr-pg migrate``: all steps until the cut-over, with one command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from olr_pg.cli.advice import advised
from olr_pg.cli.config import ConfigOption, TargetOption
from olr_pg.cli.migration.migration_display import migration_display
from olr_pg.cli.printing import on_terminal, print_json, print_line
from olr_pg.cli.shared_options import (
    AcceptOption,
    FallbackOption,
    JsonOption,
    read_config,
    spark_session_of,
)
from olr_pg.cli.signals import ends_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.config.model import Config
    from olr_pg.load.steps_done import StepState
    from olr_pg.migration.migration_steps import MigrationStep


def migrate(
    config: ConfigOption,
    *,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only show which steps are done and which remain.")
    ] = False,
    once: Annotated[
        bool,
        typer.Option(
            "--once", help="Exit when the target is ready, instead of continuing to replicate."
        ),
    ] = False,
    cutover: Annotated[
        bool, typer.Option("--cutover", help="Cut over to the target. The target must be ready.")
    ] = False,
    accept: AcceptOption = None,
    fallback: FallbackOption = False,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Migrate everything, step by step. Run it again to continue where it stopped.

    The steps: doctor, schema, load, indexes, replication, verify, rest. Then the target is ready
    for the cut-over, and replication continues until Ctrl-C. `migrate --cutover` completes the
    migration. The target stores which steps are done. No other appliance may run meanwhile.
    """
    from olr_pg.migration.migration_run import is_ready, state_of

    if fallback and not cutover:
        raise typer.BadParameter("--fallback requires --cutover")
    loaded = read_config(config, target_name)
    if plan:
        _plan(loaded, as_json=as_json)
        return
    if cutover:
        _cut_over(loaded, accept or (), fallback=fallback, as_json=as_json)
        return
    _steps(loaded, as_json=as_json)
    states = state_of(loaded)
    if once or not is_ready(states):
        return
    from olr_pg.appliance.appliance import ending_seconds, run_appliance
    from olr_pg.migration.migration_progress import MigrationWatch
    from olr_pg.schema.followed_steps import step_sql

    ends_within(ending_seconds(loaded))
    if not as_json:
        print_line(
            advised(
                "Replication continues. To cut over: stop the applications, end this"
                f" command with Ctrl-C, then run {_cutover_command(loaded)}."
            ),
            at_once=True,
        )
    watch = MigrationWatch(loaded)
    watch.begin(None)
    watch.note(_needed(states))
    with migration_display(watch, as_json=as_json):
        code = run_appliance(loaded, once=False, apply=True, translate=step_sql)
    raise typer.Exit(code)


def _cutover_command(config: Config) -> str:
    """Return the command that cuts over. An offline source needs its last rows and dictionary in
    files, for which only `olr-pg cutover` has options.
    """
    if config.source.kind == "oracle":
        return "`olr-pg migrate --cutover`"
    return (
        "`olr-pg cutover --tables DIR --dictionary FILE`, with the source's rows and dictionary"
        " from after the last change"
    )


def _steps(config: Config, *, as_json: bool) -> None:
    """Run the remaining steps, and show them."""
    from olr_pg.load.initial import PRELOAD
    from olr_pg.migration.migration_progress import MigrationWatch
    from olr_pg.migration.migration_run import migrate as do_steps
    from olr_pg.migration.migration_run import state_of
    from olr_pg.spark.session import stop_session

    watch = MigrationWatch(config)
    try:
        with migration_display(watch, as_json=as_json):
            do_steps(
                config,
                lambda: spark_session_of(config, PRELOAD),
                progress=(lambda _: None) if as_json or on_terminal() else _announce,
                watch=watch,
            )
    finally:
        stop_session()
        _show(state_of(config), _cutover_command(config), as_json=as_json)


def _announce(step: MigrationStep) -> None:
    from olr_pg.load.cutover.step_lines import begin_line

    print_line(begin_line(step.name, step.title), at_once=True)


def _show(states: Sequence[StepState], cutover: str, *, as_json: bool) -> None:
    from olr_pg.migration.migration_run import is_ready
    from olr_pg.migration.migration_steps import STEPS

    ready = is_ready(list(states))
    if as_json:
        listed = [_step_json(state) for state in states]
        print_json({"ready": ready, "steps": listed, "needs": list(_needed(states))})
        return
    known = {state.step: state for state in states}
    for step in STEPS:
        state = known.get(step.name)
        print_line(f"{step.name}: {step.title}: {state.state if state else 'waiting'}")
        for key, value in (state.detail if state else {}).items():
            for line in value if isinstance(value, list) else [value]:
                print_line(f"    {key.replace('_', ' ')}: {advised(str(line))}")
    for line in _needed(states):
        print_line(f"action required: {line}")
    if ready:
        print_line(advised(f"Ready to cut over. Run {cutover}."))


def _needed(states: Sequence[StepState]) -> tuple[str, ...]:
    from olr_pg.migration.migration_run import needed

    found = needed({state.step: state.detail for state in states})
    return tuple(advised(one) for one in found)


def _step_json(state: StepState) -> dict[str, Any]:
    end = state.finished_at
    return {
        **state._asdict(),
        "started_at": state.started_at.isoformat(),
        "finished_at": None if end is None else end.isoformat(),
    }


def _plan(config: Config, *, as_json: bool) -> None:
    from olr_pg.migration.migration_run import planned, state_of

    found, states = planned(config), state_of(config)
    if as_json:
        steps = [_step_json(state) for state in states]
        print_json({"plan": {key: dict(value) for key, value in found.items()}, "steps": steps})
        return
    for what, counts in found.items():
        listed = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        print_line(f"{what}: {listed or 'nothing'}")
    _show(states, _cutover_command(config), as_json=False)


def _cut_over(config: Config, accept: Sequence[str], *, fallback: bool, as_json: bool) -> None:
    from olr_pg.appliance.data_lock import hold_data_lock
    from olr_pg.appliance.target import data_directory
    from olr_pg.cli.migration.cutover import announce, show_cutover
    from olr_pg.errors import Code, OlrPgError
    from olr_pg.load.cutover.cut_over import CutoverOptions, cut_over
    from olr_pg.load.initial import PRELOAD
    from olr_pg.migration.migration_run import is_ready, state_of
    from olr_pg.spark.session import stop_session

    states = state_of(config)
    if not is_ready(states):
        done = ", ".join(state.step for state in states if state.is_over) or "nothing"
        raise OlrPgError(Code.MIGRATION_NOT_READY, f"done so far: {done}")
    with hold_data_lock(data_directory(config)):
        pass  # if an appliance is running, fail now and not in step 3
    try:
        cut_over(
            config,
            lambda: spark_session_of(config, PRELOAD),
            CutoverOptions(
                accept=accept,
                fallback=fallback,
                progress=(lambda _: None) if as_json else announce,
            ),
        )
    finally:
        stop_session()
        show_cutover(config, as_json=as_json)
