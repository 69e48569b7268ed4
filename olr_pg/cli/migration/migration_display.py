"""Displays a migration's progress: as a table on a terminal, otherwise as lines every few
seconds.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from olr_pg.cli.advice import advised
from olr_pg.cli.printing import flush, on_terminal, print_json, print_line
from olr_pg.observability.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Group

    from olr_pg.migration.migration_progress import MigrationProgress, MigrationWatch

TERMINAL_SECONDS: Final = 0.5
LINES_SECONDS: Final = 10.0


@contextmanager
def migration_display(
    watch: MigrationWatch, *, as_json: bool, seconds: float | None = None
) -> Iterator[None]:
    """Show the progress of a migration while the context is active.

    On a terminal the progress is a table on stderr. Otherwise it is printed to stdout as lines, or
    as JSON objects with `as_json`.

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

    from olr_pg.migration.migration_progress import progress_lines, table_line
    from olr_pg.migration.migration_steps import STEPS

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
