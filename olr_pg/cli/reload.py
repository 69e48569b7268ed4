"""``olr-pg reload``: makes the running appliance reload its configuration."""

from __future__ import annotations

import os
import signal

from olr_pg.cli.config import ConfigOption
from olr_pg.cli.printing import print_line
from olr_pg.errors import Code, OlrPgError, plain_reason


def reload(config: ConfigOption) -> None:
    """Make the running appliance read its configuration again, as SIGHUP does.

    These keys change without a restart: apply.tables, log, target.allow, target.limits,
    status.allow. The appliance logs which changes took effect and which need a restart. A file with
    an error changes nothing.
    """
    from olr_pg.config.environment import load_for_work
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
