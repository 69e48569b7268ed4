"""``olr-pg run``: the appliance."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from olr_pg.cli.config import ConfigOption
from olr_pg.cli.version import platform_text, version_of_package

if TYPE_CHECKING:
    from olr_pg.config.model import Config


class LogForm(StrEnum):
    """The choices of ``--log-format``."""

    HUMAN = "human"
    JSON = "json"


def run(
    config: ConfigOption,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Apply what is there, confirm it, and exit.")
    ] = False,
    no_apply: Annotated[
        bool, typer.Option("--no-apply", help="Only serve the port; apply nothing here.")
    ] = False,
    log_level: Annotated[
        int | None,
        typer.Option(
            "--log-level",
            min=0,
            max=3,
            help="0 errors, 1 warnings, 2 information, 3 debug; overrides the file's log.level.",
        ),
    ] = None,
    log_format: Annotated[
        LogForm | None,
        typer.Option("--log-format", help="Overrides the file's log.format."),
    ] = None,
) -> None:
    """Replicate: decode archived logs, serve the protocol's port, apply to PostgreSQL."""
    from olr_pg.config.load import load_config
    from olr_pg.config.model import secret_texts
    from olr_pg.config.outside import check_outside
    from olr_pg.observability.logs import configure_logging, get_logger

    form = log_format.value if log_format else None

    def load() -> Config:
        return with_log_options(load_config(config), log_level, form)

    loaded = load()
    check_outside(loaded, str(config))
    configure_logging(loaded.log.level, loaded.log.format, secrets=secret_texts(loaded))
    get_logger("olr-pg").info(
        "starting",
        version=version_of_package(),
        platform=platform_text(),
        config=str(config.absolute()),
    )
    from olr_pg.replicator.appliance import run_appliance

    raise typer.Exit(run_appliance(loaded, once=once, apply=not no_apply, reload=load))


def with_log_options(config: Config, level: int | None, log_format: str | None) -> Config:
    """`config` with the command line's log options in place of the file's."""
    options = {"level": level, "format": log_format}
    given = {key: value for key, value in options.items() if value is not None}
    return config.model_copy(update={"log": config.log.model_copy(update=given)})
