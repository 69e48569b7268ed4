"""``olr-pg verify`` and ``olr-pg repair``: compare the target with the source, and repair rows."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from olr_pg.cli.config import ConfigOption, TargetOption
from olr_pg.cli.migration.load import losses_json, row_totals
from olr_pg.cli.printing import print_json, print_line, print_table, report_console, report_table
from olr_pg.cli.shared_options import JsonOption, TableOption, read_config, spark_session_of
from olr_pg.errors import OlrPgError
from olr_pg.load.row_progress import row_progress
from olr_pg.observability.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.config.model import Config
    from olr_pg.load.table_data import TableSource
    from olr_pg.load.verification.continuous import Mending
    from olr_pg.load.verification.differences import TableDifferences
    from olr_pg.load.verification.repair import RepairedTable
    from olr_pg.load.verification.verification import Verification, VerifiedTable
    from olr_pg.monitor.proofs import Proof

DEFINITIONS_SECONDS: Final = 600.0
"""Time after which `--continuous` reads the list of tables and their definitions again."""

FAILURE_SECONDS: Final = 30.0
"""Time after which `--continuous` reads the list and the definitions again if a table could not be
compared. This time is shorter than the usual one, because the table's definition may have changed.
"""

SHOWN_MAX: Final = 20
"""Maximum number of differences that are printed per table; the file contains all of them."""

DifferencesOption = Annotated[
    Path | None,
    typer.Option(
        "--differences",
        metavar="FILE",
        help="Write the differing rows to this file, for `olr-pg repair`.",
    ),
]


def verify(
    config: ConfigOption,
    *,
    table: TableOption = None,
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables",
            metavar="DIR",
            help="Compare with the Parquet files in this directory instead of the live source.",
        ),
    ] = None,
    at_scn: Annotated[
        int | None,
        typer.Option("--at-scn", min=1, help="Compare with the source's rows as of this SCN."),
    ] = None,
    sample: Annotated[
        float,
        typer.Option(
            "--sample",
            metavar="PERCENT",
            help="Compare only a sample of the rows, of this size in percent.",
        ),
    ] = 100.0,
    differences: DifferencesOption = None,
    continuous: Annotated[
        bool,
        typer.Option(
            "--continuous",
            help="Compare one table after the other repeatedly, while `run` replicates.",
        ),
    ] = False,
    share: Annotated[
        float | None,
        typer.Option(
            "--share",
            metavar="PERCENT",
            help="With --continuous: maximum percentage of the time of one core.",
        ),
    ] = None,
    lag_max: Annotated[
        float | None,
        typer.Option(
            "--lag-max",
            metavar="SECONDS",
            min=0,
            help=(
                "With --continuous: the more a table of `run` lags behind, the less the command"
                " compares. From this lag on, it compares nothing."
            ),
        ),
    ] = None,
    rows_per_second: Annotated[
        float | None,
        typer.Option(
            "--rows-per-second",
            metavar="ROWS",
            min=1,
            help="With --continuous: maximum number of rows per second that are read from the"
            " source.",
        ),
    ] = None,
    mend_per_hour: Annotated[
        int | None,
        typer.Option(
            "--mend-per-hour",
            metavar="ROWS",
            min=0,
            help="With --continuous: repair differing rows, at most this number in an hour."
            " 0: repair no rows.",
        ),
    ] = None,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the target's tables with the source's; exit code 1 if they differ.

    Both sides are read once; rows are fetched only where digests differ. What the type mapping does
    not preserve (nanoseconds, padding, characters without an equivalent) does not count as a
    difference and is counted separately. If a table cannot be compared, the others still are; then
    the command fails with its error.

    With --continuous, the command compares the tables repeatedly, the one with the oldest
    comparison first, until Ctrl-C or SIGTERM. The command compares tables with a key range by
    range. Rows that differ are compared once more as of a later SCN. The metrics and the status
    page of `run` show when each table was last found equal. `verify.continuous` of the
    configuration makes `run` do the same. The section `verify` also contains the values of options
    that are not given here.
    """
    if not 0 < sample <= 100:
        raise typer.BadParameter("--sample must be greater than 0 and at most 100 percent")
    if share is not None and not 0 < share <= 100:
        raise typer.BadParameter("--share must be greater than 0 and at most 100 percent")
    if continuous:
        if differences or tables or at_scn or sample < 100:
            raise typer.BadParameter(
                "--continuous cannot be used with --tables, --at-scn, --sample or"
                " --differences, because it compares complete tables as of the current"
                " SCN"
            )
        loaded = read_config(config, target_name)
        section = loaded.verify
        repairs = section.repairs_per_hour if section.continuous == "repair" else 0
        budget = (
            (section.share if share is None else share) / 100,
            section.rows_per_second if rows_per_second is None else rows_per_second,
            section.lag_max if lag_max is None else lag_max,
        )
        _verify_continuously(
            loaded,
            table or (),
            budget,
            repairs if mend_per_hour is None else mend_per_hour,
            as_json=as_json,
        )
        return
    if any(one is not None for one in (share, lag_max, rows_per_second, mend_per_hour)):
        raise typer.BadParameter(
            "--share, --lag-max, --rows-per-second and --mend-per-hour require --continuous"
        )
    from olr_pg.load.verification.differences import check_writable, write_differences
    from olr_pg.load.verification.verification import Scope
    from olr_pg.load.verification.verification import verify as compare

    loaded = read_config(config, target_name)
    if differences is not None:
        check_writable(differences)
    with ExitStack() as stack:
        source, settings = both_sides(stack, loaded, folder=tables, scn=at_scn)
        work = source.sources(source.choose(table or ()))
        # The progress counts the rows of both sides.
        with row_progress("comparing", row_totals(work, times=2)) as progress:
            found = compare(
                settings,
                work,
                lambda: spark_session_of(loaded),
                Scope(at_position=at_scn is None, sample=sample / 100),
                progress=progress.advance,
            )
        lines = print_verification(settings, found, as_json=as_json)
    if differences is not None:
        write_differences(differences, lines)
    if found.failures:
        raise found.failures[0]
    if not found.identical:
        raise typer.Exit(1)


def print_verification(
    settings: ApplierSettings, found: Verification, *, as_json: bool
) -> list[dict[str, Any]]:
    """Print the result of a comparison; return records of the differing rows."""
    lines = _describe(settings, found.tables)
    if as_json:
        print_json(_json(found))
    else:
        _print(found, lines)
    return lines


def both_sides(
    stack: ExitStack, loaded: Config, *, folder: Path | None = None, scn: int | None = None
) -> tuple[TableSource, ApplierSettings]:
    """Open the source's tables and the target; both stay open until the stack closes.

    Args:
        folder, scn: see `load.sources.open_tables`.
    """
    from olr_pg.appliance.opened_target import open_target
    from olr_pg.appliance.target import target_directory
    from olr_pg.load import sources
    from olr_pg.spark.session import stop_session

    source = stack.enter_context(sources.open_tables(loaded, folder=folder, scn=scn))
    stack.callback(stop_session)
    target = open_target(sources.apply_section(loaded), target_directory(loaded), stack)
    return source, sources.target_settings(loaded, source.snapshot, target)


def _lag(loaded: Config) -> float:
    """Return the highest lag in seconds of the tables of the running appliance; 0 if none is
    running.
    """
    from olr_pg.monitor.status_client import ask_status

    page = f"status.json?target={loaded.name}" if loaded.name else "status.json"
    try:
        record = ask_status(loaded, page=page)
    except OlrPgError:
        return 0.0
    tables = [one for one in record["tables"] if not one["stopped"] and not one["paused"]]
    return max((one["lag_seconds"] or 0.0 for one in tables), default=0.0)


def _verify_continuously(
    loaded: Config,
    names: Sequence[str],
    budget: tuple[float, float | None, float],
    mend_per_hour: int,
    *,
    as_json: bool,
) -> None:
    """Compare the tables endlessly; read the list of tables and their definitions again
    periodically.

    Args:
        budget: see `load.verification.continuous.Budget`.
        mend_per_hour: maximum number of rows to repair per hour; 0 to repair none.

    Raises:
        OlrPgError: 4046, another process compares this target continuously.
    """
    from olr_pg.appliance.data_lock import hold_verification_lock
    from olr_pg.appliance.encryption import row_key
    from olr_pg.appliance.target import target_directory
    from olr_pg.decoding.filters import filters_of_target
    from olr_pg.files.sealed import sealing
    from olr_pg.load.verification.continuous import Mending

    mending = Mending(mend_per_hour, filters_of_target(loaded)) if mend_per_hour else None
    with hold_verification_lock(target_directory(loaded)), sealing(row_key(loaded)):
        while True:
            _verify_for_a_while(loaded, names, budget, mending, as_json=as_json)


def _verify_for_a_while(
    loaded: Config,
    names: Sequence[str],
    budget: tuple[float, float | None, float],
    mending: Mending | None,
    *,
    as_json: bool,
) -> None:
    """Compare until the tables and definitions must be read again (see `DEFINITIONS_SECONDS`)."""
    from olr_pg.appliance.target import target_directory
    from olr_pg.load.verification.continuous import Budget, ContinuousVerification

    with ExitStack() as stack:
        source, settings = both_sides(stack, loaded)
        verification = ContinuousVerification(
            settings,
            source,
            target_directory(loaded),
            lambda: spark_session_of(loaded),
            mending,
        )
        tables = source.choose(names)
        began = time.monotonic()
        for proof in verification.walk(tables, Budget(*budget), lag=lambda: _lag(loaded)):
            is_news = proof.differences and proof.at == proof.tried_at
            if proof.failure or is_news or not verification.is_walking(proof.table):
                if as_json:
                    print_json({**proof._asdict(), "equal": proof.is_equal}, at_once=True)
                else:
                    print_line(_proven(proof), at_once=True)
            age = time.monotonic() - began
            if age > DEFINITIONS_SECONDS or (proof.failure and age > FAILURE_SECONDS):
                return


def _proven(proof: Proof) -> str:
    """Describe the last comparison of a table."""
    if proof.failure:
        return f"{proof.table}: not compared: {proof.failure}"
    lacking = f", {counted(proof.lacking, 'row')} lack LOB values" if proof.lacking else ""
    as_of = f" as of SCN {proof.scn}" if proof.scn else ""
    mended = f", {counted(proof.mended, 'row')} repaired" if proof.mended else ""
    lacking += mended
    if proof.is_equal:
        return f"{proof.table}: equal{as_of}, {counted(proof.rows, 'row')}{lacking}"
    return (
        f"{proof.table}: {counted(proof.differences, 'row')} differ{as_of}{lacking}:"
        f" `olr-pg verify --table {shlex.quote(proof.table)} --differences FILE` lists them"
    )


def repair(
    config: ConfigOption,
    *,
    differences: Annotated[
        Path,
        typer.Option(
            "--differences",
            metavar="FILE",
            help="The file that `olr-pg verify --differences FILE` has written.",
        ),
    ],
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Repair the rows; without this option the command only shows what it would do.",
        ),
    ] = False,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Repair exactly the rows that `olr-pg verify --differences FILE` listed.

    Without --yes, the command only shows what it would do. The command does not change rows that
    have changed since the comparison. If the command fails, it lists which tables were repaired and
    which were not.
    """
    from olr_pg.appliance.encryption import row_key
    from olr_pg.files.sealed import sealing
    from olr_pg.load import sources
    from olr_pg.load.verification.differences import read_differences
    from olr_pg.load.verification.repair import repair as mend

    loaded = read_config(config, target_name)
    with sealing(row_key(loaded)):  # `verify --continuous` encrypts its file if a key is configured
        tables = read_differences(differences, sources.apply_section(loaded).subscription)
    if not as_json:
        _print_plan(tables)
    if not yes:
        if as_json:
            print_json({"repaired": False, "tables": [_plan_json(one) for one in tables]})
        elif tables:
            print_line("Nothing was changed. Run the command with --yes to repair the rows.")
        return
    with ExitStack() as stack:
        _, settings = both_sides(stack, loaded)
        _report(mend(settings, tables), [one.table for one in tables], as_json=as_json)


def _report(repaired: Iterable[RepairedTable], tables: Sequence[str], *, as_json: bool) -> None:
    """Print the result for each table, also if the repair fails before it has repaired all
    tables.
    """
    done: list[RepairedTable] = []
    try:
        for one in repaired:
            done.append(one)
            if not as_json:
                _print_repaired(one)
    finally:
        unfinished = tables[len(done) :]
        if as_json:
            outcomes = [one._asdict() for one in done]
            print_json({"repaired": True, "tables": outcomes, "unfinished": unfinished})
        elif unfinished:
            print_line(f"not repaired: {', '.join(unfinished)}")


def _describe(settings: ApplierSettings, results: Sequence[VerifiedTable]) -> list[dict[str, Any]]:
    from olr_pg.applier.target.connection import connect_with
    from olr_pg.load.verification.differences import difference_lines

    with connect_with(settings, writes=False) as connection:
        return list(difference_lines(connection, settings.subscription, results))


def _json(found: Verification) -> dict[str, Any]:
    from olr_pg.observability.advised_commands import failure_record

    tables = [
        {
            "table": one.table.source.full_name,
            "target": one.table.target.full_name,
            "scn": one.scn,
            "applied_scn": one.applied_scn,
            "source_rows": one.source_rows,
            "target_rows": one.target_rows,
            "chunks": one.chunks,
            "differing_chunks": one.differing,
            "skipped_chunks": one.skipped,
            "differences": dict(Counter(difference.kind for difference in one.differences)),
            "losses": losses_json(one.losses),
        }
        for one in found.tables
    ]
    failures = [failure_record(failure) for failure in found.failures]
    return {"identical": found.identical, "tables": tables, "failures": failures}


def _print(found: Verification, lines: Sequence[dict[str, Any]]) -> None:
    results = found.tables
    numbers = ("Source rows", "Target rows", "Missing", "Extra", "Different", "Identical")
    grid = report_table("Table", numbers=numbers, title="Verified")
    for one in results:
        kinds = Counter(difference.kind for difference in one.differences)
        grid.add_row(
            one.table.source.full_name,
            *(f"{one.source_rows:,}", f"{one.target_rows:,}"),
            *(str(kinds[kind]) for kind in ("missing", "extra", "different")),
            "yes" if one.identical else "NO",
        )
    print_table(report_console(), grid)
    _print_lines(lines)
    for one in results:
        if one.skipped:
            print_line(
                f"{one.table.source.full_name}: rows of {counted(one.skipped, 'more chunk')} that"
                " differ were not fetched. Verify again after the repair."
            )
        for column, counts in losses_json(one.losses).items():
            words = ", ".join(f"{count} {kind}" for kind, count in counts.items())
            print_line(f"{one.table.source.full_name}.{column}: not kept by the mapping: {words}")
    for failure in found.failures:
        print_line(f"not compared: {failure}")


def _print_lines(lines: Sequence[dict[str, Any]]) -> None:
    """Print the differing rows in short form, up to `SHOWN_MAX` per table."""
    table, shown = "", 0
    for line in lines[1:]:
        if "columns" in line:
            table, shown = line["table"], 0
            continue
        shown += 1
        if shown > SHOWN_MAX:
            if shown == SHOWN_MAX + 1:
                print_line(f"{table}: … (--differences FILE has all of them)")
            continue
        row = line.get("key") or line["source"] or line["target"]
        words = ", ".join(f"{name} = {value}" for name, value in row.items())
        columns = f": {', '.join(line['differing'])}" if "differing" in line else ""
        print_line(f"{table}: {line['kind']} {words}{columns}")


def _plan_json(table: TableDifferences) -> dict[str, Any]:
    kinds = Counter(difference.kind for difference in table.rows)
    return {
        "table": table.table,
        "insert": kinds["missing"],
        "update": kinds["different"],
        "delete": kinds["extra"],
    }


def _print_plan(tables: Sequence[TableDifferences]) -> None:
    if not tables:
        print_line("The file contains no rows to repair.")
    for table in tables:
        plan = _plan_json(table)
        print_line(
            f"{table.table} → {table.schema}.{table.name}: insert {plan['insert']}, update"
            f" {plan['update']}, delete {plan['delete']} rows"
        )


def _print_repaired(done: RepairedTable) -> None:
    words = f"{done.inserted} inserted, {done.updated} updated, {done.deleted} deleted"
    count = counted(
        done.left,
        "row was not repaired, because it has changed",
        "rows were not repaired, because they have changed",
    )
    left = f"; {count} since the comparison" if done.left else ""
    print_line(f"{done.table}: {words}{left}", at_once=True)
