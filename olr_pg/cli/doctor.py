"""``olr-pg doctor``: reports problems, with SQL to fix them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Final

import typer

from olr_pg.cli.config import ConfigOption, TargetOption
from olr_pg.cli.group import advised
from olr_pg.cli.printing import log_to_stderr, print_json, print_line
from olr_pg.observability.wording import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.appliance.passed_checks import Check
    from olr_pg.config.model import Config
    from olr_pg.observability.findings import Finding

EXIT_WARNINGS: Final = 10
EXIT_ERRORS: Final = 11


def doctor(
    config: ConfigOption,
    *,
    target_name: TargetOption = None,
    for_load: Annotated[
        bool,
        typer.Option(
            "--load",
            help="Also check that initial-load and verify can read the rows of the source.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
) -> None:
    """Check the source, the target and this machine. List problems and how to fix them.

    It changes nothing. The list also contains the checks that passed, except with --json. Exit
    codes: 0 no problems, 10 only warnings, 11 errors.
    """
    from olr_pg.appliance.all_checks import diagnose
    from olr_pg.appliance.passed_checks import passed_checks
    from olr_pg.config.outside import load_for_work
    from olr_pg.config.reading import one_target

    log_to_stderr()
    loaded = one_target(load_for_work(config), target_name)
    findings = [*diagnose(loaded, for_load=for_load), *_way_back(loaded)]
    if as_json:
        print_json([finding.as_json() for finding in findings])
    else:
        _print(findings, passed_checks(loaded, findings, for_load=for_load))
    raise typer.Exit(_exit_code(findings))


def _way_back(config: Config) -> list[Finding]:
    """Check the requirements of the fallback to Oracle, if the fallback is configured."""
    from olr_pg.appliance.opened_target import opened_target
    from olr_pg.errors import OlrPgError
    from olr_pg.fallback.way_back_checks import SLOTS, check_ledger_known, check_way_back
    from olr_pg.load import sources
    from olr_pg.load.cutover.cut_back import ways_back
    from olr_pg.observability.findings import coded

    if config.fallback is None or config.apply is None:
        return []
    try:
        with (
            opened_target(config, ledger="unused") as (connection, target),
            sources.open_tables(config) as source,
        ):
            return [
                *check_ledger_known(source.snapshot, config.fallback),
                *check_way_back(connection, ways_back(config, source, target), config.fallback),
            ]
    except OlrPgError as problem:
        return [coded(SLOTS, problem)]


def _print(findings: Sequence[Finding], passed: Sequence[Check]) -> None:
    for check in passed:
        print_line(f"ok      {check.name}: {check.passed}")
    for finding in findings:
        print_line(f"{finding.severity.name:7} {finding.check}: {one_line(finding.what)}")
        for line in finding.mend:
            print_line(f"    {one_line(advised(line))}")
    checks = f"{counted(len(passed), 'check')} passed"
    print_line(f"{checks}, {_count(findings)}" if findings else f"{checks}: no problems")


def _count(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.severity.name.lower() for finding in findings)
    return ", ".join(counted(number, name) for name, number in sorted(counts.items()))


def _exit_code(findings: Sequence[Finding]) -> int:
    from olr_pg.observability.findings import Severity

    worst = max((finding.severity for finding in findings), default=None)
    if worst is None:
        return 0
    return EXIT_ERRORS if worst is Severity.ERROR else EXIT_WARNINGS
