"""``olr-pg assess``: reports the contents of the source, and the work to migrate it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from olr_pg.cli.config import ConfigOption, TargetOption
from olr_pg.cli.printing import print_json, print_line, print_step
from olr_pg.cli.shared_options import JsonOption, read_config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.assessment.report import Report
    from olr_pg.config.model import Config
    from olr_pg.errors import OlrPgError


def assess(
    config: ConfigOption,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Also write report.html, .json, .csv and .txt."
        ),
    ] = None,
    owner: Annotated[
        list[str] | None,
        typer.Option(
            "--owner",
            metavar="OWNER",
            help="Assess only this schema, instead of the schemas of `apply.tables`; repeatable.",
        ),
    ] = None,
    no_target: Annotated[
        bool,
        typer.Option(
            "--no-target",
            help="Do not connect to the target: no statement is tried and nothing is measured"
            " there.",
        ),
    ] = False,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report what the source's schemas contain, what needs manual work, and how much.

    The command reads the dictionary of a live source, or the inventory file beside an exported
    dictionary. The command changes nothing: it tries statements in the target in a transaction that
    is rolled back.
    """
    from olr_pg.assessment.forms import report_json, report_lines

    loaded = read_config(config, target_name)
    if out is not None:
        _prepare(out)
    report = _report(loaded, owner or [], with_target=not no_target)
    if out is not None:
        _write(report, out)
    if as_json:
        print_json(report_json(report))
        return
    for line in report_lines(report):
        print_line(line)
    if out is not None:
        print_line(f"the full report: {out / 'report.html'}")


def _report(config: Config, owners: list[str], *, with_target: bool) -> Report:
    from olr_pg.appliance.opened_target import opened_target
    from olr_pg.assessment.assessor import assess as assess_inventory
    from olr_pg.assessment.assessor import text_columns
    from olr_pg.assessment.report import join_reports, measure_rates
    from olr_pg.schema.relations import Relations
    from olr_pg.schema.source_inventory import read_schemas
    from olr_pg.schema.trial import tried

    print_step("reading the schemas of the source")
    schemas = read_schemas(config, owners)
    assert config.apply is not None
    statements, rates = [one.statements(config) for one in schemas], None
    if with_target:
        print_step("trying the statements in the target, and measuring its speed")
        with opened_target(config, ledger="unused") as (connection, _):
            statements = [tried(connection, own) for own in statements]
            rates = measure_rates(connection, config.apply.workers)
    redo_rates = None
    if rates is not None and any(one.inventory.redo for one in schemas):
        from olr_pg.bench.redo_rates import measure_redo  # late import: kernels take memory

        print_step("measuring how fast this machine decodes redo")
        redo_rates = measure_redo()
    reports = {
        one.container: assess_inventory(
            one.inventory,
            one.snapshot,
            one.replicated,
            Relations(one.inventory, one.settings(config, "")),
            own,
            rates,
        )
        for one, own in zip(schemas, statements, strict=True)
    }
    replicated = (
        table
        for one in schemas
        for table in one.joined.tables
        if table.con_id == (one.names.con_id or table.con_id)
        and f"{table.source_owner}.{table.name}" in one.replicated
    )
    texts = text_columns(schemas[0].joined.database.charset, replicated)
    return join_reports(reports)._replace(texts=texts, redo_rates=redo_rates)


def _prepare(out: Path) -> None:
    """Create the output directory before the work, so that a wrong one is reported at once.

    Raises:
        OlrPgError: 1210, the directory cannot be created or written.
    """
    from olr_pg.files.owned import check_writable

    try:
        out.mkdir(parents=True, exist_ok=True)
        check_writable(out / "report.html")
    except OSError as error:
        raise _unwritable(out, error) from error


def _unwritable(path: object, error: OSError) -> OlrPgError:
    from olr_pg.errors import Code, OlrPgError, system_reason

    return OlrPgError(Code.OUTPUT_UNWRITABLE, f"{path}: {system_reason(error)}")


def _write(report: Report, out: Path) -> None:
    from olr_pg.assessment.forms import csv_lines, html_pieces, json_pieces, whole_report
    from olr_pg.files.owned import written_whole

    pieces: dict[str, Iterator[bytes]] = {
        "report.html": (piece.encode() for piece in html_pieces(report)),
        "report.json": json_pieces(report),
        "report.csv": (f"{line}\r\n".encode() for line in csv_lines(report)),
        "report.txt": (f"{line}\n".encode() for line in whole_report(report)),
    }
    try:
        for name, written in pieces.items():
            with written_whole(out / name) as file:
                file.writelines(written)
    except OSError as error:
        raise _unwritable(error.filename or out, error) from error
