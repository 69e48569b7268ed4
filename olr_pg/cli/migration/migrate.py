"""``olr-pg migrate``: all steps until the cut-over, with one command.

The command shows its progress as a table on a terminal, otherwise as lines every few seconds.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from olr_pg.cli.config import ConfigOption, TargetOption
from olr_pg.cli.group import advised, ends_within
from olr_pg.cli.printing import flush, on_terminal, print_json, print_line
from olr_pg.cli.shared_options import (
    AcceptOption,
    FallbackOption,
    JsonOption,
    read_config,
    spark_session_of,
)
from olr_pg.observability.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Group

    from olr_pg.config.model import Config
    from olr_pg.load.cutover_steps import StepState
    from olr_pg.migration.migration_progress import MigrationProgress, MigrationStep, MigrationWatch

TERMINAL_SECONDS: Final = 0.5
LINES_SECONDS: Final = 10.0


@contextmanager
def migration_display(
    watch: MigrationWatch, *, as_json: bool, seconds: float | None = None
) -> Iterator[None]:
    """Show the progress of a migration while the context is active.

    On a terminal the progress is a table on stderr. If there is no terminal, the progress is
    printed to stdout as lines, or as JSON objects with `as_json`.

    Args:
        seconds: interval between updates.
    """
    if on_terminal() and not as_json:
        with _live() as show, _looking(watch, show, seconds or TERMINAL_SECONDS):
            yield
        return
    with _looking(watch, _print_json if as_json else ProgressLines(), seconds or LINES_SECONDS):
        yield


@contextmanager
def _looking(
    watch: MigrationWatch, show: Callable[[MigrationProgress], None], seconds: float
) -> Iterator[None]:
    stop = threading.Event()

    def look() -> None:
        # The migration must continue even if the reader of the output has closed it.
        with suppress(OSError):
            while not stop.wait(seconds):
                now = watch.read()
                show(now._replace(needs=tuple(advised(one) for one in now.needs)))
        watch.close()

    thread = threading.Thread(target=look, name="olr-migration-display")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def _live() -> Iterator[Callable[[MigrationProgress], None]]:
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, markup=False, emoji=False)
    with Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False) as live:
        yield lambda progress: live.update(progress_view(progress), refresh=True)


def progress_view(progress: MigrationProgress) -> Group:
    """Return the table for a terminal."""
    from rich.console import Group
    from rich.table import Table as Grid
    from rich.text import Text

    from olr_pg.migration.migration_progress import STEPS, progress_lines, table_line

    names = [step.name for step in STEPS]
    at = names.index(progress.step) if progress.step in names else len(names)
    marks = ["✓" if n < at else "▸" if n == at else "·" for n in range(len(names))]
    steps = "  ".join(f"{mark} {name}" for mark, name in zip(marks, names, strict=True))
    parts: list[Any] = [Text(steps, style="bold"), Text(progress_lines(progress)[0])]
    grid = Grid(box=None, show_header=False, padding=(0, 1))
    for table in progress.tables:
        grid.add_row("✓" if table.seconds_left == 0.0 else " ", one_line(table_line(table)))
    if progress.tables:
        parts.append(grid)
    parts += [Text(f"! {one}", style="bold red") for one in progress.needs]
    return Group(*parts)


class ProgressLines:
    """Prints the progress as lines. The actions that an operator must take are printed each time
    they change.
    """

    def __init__(self) -> None:
        self._told: tuple[str, ...] = ()

    def __call__(self, progress: MigrationProgress) -> None:
        """Print the lines for the current progress."""
        from olr_pg.migration.migration_progress import progress_lines

        is_told = progress.needs == self._told
        self._told = progress.needs
        for line in progress_lines(progress._replace(needs=()) if is_told else progress):
            print_line(line)
        flush()


def _print_json(progress: MigrationProgress) -> None:
    print_json({"progress": progress_json(progress)})
    flush()


def progress_json(progress: MigrationProgress) -> dict[str, Any]:
    """Return the progress as JSON."""
    behind = progress.replicating
    return {
        **progress._asdict(),
        "seconds": round(progress.seconds, 1),
        "tables": [table._asdict() for table in progress.tables],
        "replicating": None if behind is None else behind._asdict(),
    }


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
    """Migrate everything, step by step. Run the command again to continue where it stopped.

    The steps: doctor, schema, load, indexes, replication, verify, rest. After these steps, the
    target is ready for the cut-over, and replication continues until Ctrl-C. `migrate --cutover`
    completes the migration. The target stores which steps are done. No other appliance may run
    meanwhile.
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
    from olr_pg.migration.migration_progress import MigrationWatch
    from olr_pg.migration.migration_run import migrate as do_steps
    from olr_pg.migration.migration_run import state_of
    from olr_pg.spark.session import stop_session

    watch = MigrationWatch(config)
    try:
        with migration_display(watch, as_json=as_json):
            do_steps(
                config,
                lambda: spark_session_of(config),
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
    from olr_pg.migration.migration_progress import STEPS
    from olr_pg.migration.migration_run import is_ready

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
    from olr_pg.cli.migration.cutover import announce, show_cutover
    from olr_pg.errors import Code, OlrPgError
    from olr_pg.load.cutover.cut_over import CutoverOptions, cut_over
    from olr_pg.migration.migration_run import is_ready, state_of
    from olr_pg.spark.session import stop_session

    states = state_of(config)
    if not is_ready(states):
        done = ", ".join(state.step for state in states if state.is_over) or "nothing"
        raise OlrPgError(Code.MIGRATION_NOT_READY, f"done so far: {done}")
    if config.source.kind != "oracle":
        raise OlrPgError(
            Code.LIVE_SOURCE_NEEDED,
            "`migrate --cutover` has no options for the last rows and the last dictionary of an"
            " offline source",
            action=f"run {_cutover_command(config)}",
        )
    try:
        cut_over(
            config,
            lambda: spark_session_of(config),
            CutoverOptions(
                accept=accept,
                fallback=fallback,
                progress=(lambda _: None) if as_json else announce,
            ),
        )
    finally:
        stop_session()
        show_cutover(config, as_json=as_json)
