"""``olr-pg run`` runs the appliance; ``olr-pg reload`` makes it reload its configuration."""

from __future__ import annotations

import os
import platform
import signal
from contextlib import ExitStack
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from olr_pg.cli.config import ConfigOption
from olr_pg.cli.group import ends_within
from olr_pg.cli.printing import print_line
from olr_pg.cli.version import platform_text, version_of_package
from olr_pg.errors import Code, OlrPgError, plain_reason

if TYPE_CHECKING:
    from olr_pg.config.model import Config
    from olr_pg.ordering.run_end import Until

TIME_FORMATS: Final = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d"]
FIRST_YEAR: Final = 1988
"""The first year that times in redo can represent."""


class LogForm(StrEnum):
    """The values of ``--log-format``."""

    HUMAN = "human"
    JSON = "json"


def run(
    config: ConfigOption,
    *,
    once: Annotated[
        bool,
        typer.Option("--once", help="Apply the redo that is available now, confirm it, and exit."),
    ] = False,
    until_scn: Annotated[
        int | None,
        typer.Option(
            "--until-scn",
            metavar="N",
            min=1,
            help="Apply the transactions with a commit SCN up to this SCN (inclusive),"
            " confirm them, and exit.",
        ),
    ] = None,
    until_time: Annotated[
        datetime | None,
        typer.Option(
            "--until-time",
            metavar="TIME",
            formats=TIME_FORMATS,
            help="Apply the transactions before the first one that commits later than this"
            " time (YYYY-MM-DDTHH:MM:SS, the database server's clock), confirm them, and"
            " exit.",
        ),
    ] = None,
    no_apply: Annotated[
        bool,
        typer.Option("--no-apply", help="Only serve the port; do not start the bundled applier."),
    ] = False,
    log_level: Annotated[
        int | None,
        typer.Option(
            "--log-level",
            min=0,
            max=4,
            help="0: nothing; 1: only critical errors; 2: errors and warnings; 3: also"
            " information; 4: also debugging detail. Overrides `log.level` of the"
            " configuration, which is 3 by default.",
        ),
    ] = None,
    log_format: Annotated[
        LogForm | None,
        typer.Option(
            "--log-format",
            help="The form of log lines. Overrides `log.format` of the configuration.",
        ),
    ] = None,
) -> None:
    """Replicate: decode archived logs, serve the protocol's port, apply to PostgreSQL."""
    until = _until(until_scn, until_time)
    from olr_pg.config.model import secret_texts
    from olr_pg.config.outside import Environment, check_outside, load_for_work
    from olr_pg.observability.logging_setup import configure_logging, get_logger

    form = log_format.value if log_format else None
    environment = Environment()

    def load() -> Config:
        return with_log_options(load_for_work(config, environment), log_level, form)

    loaded = load()
    check_outside(loaded, str(config))
    configure_logging(loaded.log.level, loaded.log.format, secrets=secret_texts(loaded))
    log = get_logger("olr-pg")
    log.info(
        "starting",
        version=version_of_package(),
        architecture=platform.machine(),
        platform=platform_text(),
        config=str(config.absolute()),
    )
    if "min_mb" in loaded.context.memory.model_fields_set:
        log.warning("an option is accepted but has no effect", key="context.memory.min-mb")
    from olr_pg.appliance.appliance import ending_seconds, run_appliance
    from olr_pg.schema.followed_steps import step_sql

    ends_within(ending_seconds(loaded))
    appliance = partial(
        run_appliance,
        loaded,
        once=once,
        apply=not no_apply,
        reload=load,
        until=until,
        withheld=environment.withheld,
        translate=step_sql,
    )
    with ExitStack() as beside:
        if not no_apply and any(
            part.apply and part.apply.incomplete_lobs for part in loaded.targets
        ):
            from olr_pg.load.lob_fetching import fetching_lobs

            beside.enter_context(fetching_lobs(loaded))
        if not (no_apply or once or until):
            from olr_pg.appliance.verifying import verifying

            beside.enter_context(verifying(loaded, environment.withheld))
        code = appliance()
    from olr_pg.config.source_section import OfflineSource

    if once and isinstance(loaded.source, OfflineSource):
        from olr_pg.appliance.offline_checks import check_any_log

        # A run with an end must not report success if there is no log at all.
        check_any_log(loaded.source)
    raise typer.Exit(code)


def _until(scn: int | None, time: datetime | None) -> Until | None:
    """Return the point at which the run ends; None if it has no end."""
    if scn is not None and time is not None:
        raise typer.BadParameter("give --until-scn or --until-time, not both")
    if scn is None and time is None:
        return None
    from olr_pg.ordering.run_end import Until
    from olr_pg.scalars import encode_redo_time

    if time is not None and time.year < FIRST_YEAR:
        raise typer.BadParameter(
            f"--until-time is before {FIRST_YEAR}, the first year that redo can contain"
        )
    return Until(scn, None if time is None else encode_redo_time(time))


def with_log_options(config: Config, level: int | None, log_format: str | None) -> Config:
    """Return `config` with its log options replaced by the options of the command line."""
    options = {"level": level, "format": log_format}
    given = {key: value for key, value in options.items() if value is not None}
    return config.model_copy(update={"log": config.log.model_copy(update=given)})


def reload(config: ConfigOption) -> None:
    """Make the running appliance read its configuration again, as SIGHUP does.

    These keys change without a restart: apply.tables, log, target.allow, target.limits,
    status.allow. The appliance logs which changes took effect and which need a restart. A file with
    an error changes nothing.
    """
    from olr_pg.config.outside import load_for_work
    from olr_pg.monitor.status_client import announced_process, ask_status

    loaded = load_for_work(config)
    try:
        ask_status(loaded, page="healthz")  # the process id may belong to another process
    except OlrPgError as error:
        if error.code != Code.APPLIANCE_SILENT:
            raise
    number = announced_process(loaded)
    try:
        os.kill(number, signal.SIGHUP)
    except OSError as error:
        raise OlrPgError(Code.NO_APPLIANCE, plain_reason(error), pid=number) from error
    print_line(
        f"process {number} reads its configuration again; its log reports which changes took effect"
    )
