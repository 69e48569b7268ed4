"""Opens a connection to the target and returns it with the applier's settings, for commands that
need only these.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from olr_pg.cli.shared_options import read_config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from psycopg import Connection

    from olr_pg.appliance.opened_target import LedgerUse
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.config.model import Config


@contextmanager
def open_settings(
    path: Path, name: str | None
) -> Iterator[tuple[Connection[Any], ApplierSettings]]:
    """Open a connection to the target of a configuration file, which must have a ledger; see
    `open_target_of`.
    """
    with open_target_of(read_config(path, name), ledger="required") as opened:
        yield opened


@contextmanager
def open_target_of(
    config: Config, *, ledger: LedgerUse = "created"
) -> Iterator[tuple[Connection[Any], ApplierSettings]]:
    """Open a connection to the target; return it with the applier's settings.

    Args:
        config: the configuration; it has only one target.
        ledger: as for `opened_target`.

    Raises:
        OlrPgError: 1091 there is no target, 5003 the target cannot be reached, 5015 and 5031 errors
            of the ledger.
    """
    from olr_pg.appliance.appliance import applier_settings
    from olr_pg.appliance.container_names import containers_of
    from olr_pg.appliance.opened_target import opened_target
    from olr_pg.applier.settings import TriggerHandling
    from olr_pg.datatypes.convert import DEFAULT_FACTS
    from olr_pg.wire.frames import ByteOrder

    section = config.apply
    replica = section is not None and section.triggers == TriggerHandling.REPLICA.value
    with opened_target(config, replica=replica, ledger=ledger) as (connection, target):
        assert section is not None  # `opened_target` has checked this
        order = ByteOrder(config.port.byte_order)
        # Default facts about the source are sufficient, because the real ones are stored with the
        # held changes.
        settings = applier_settings(section, target, ("", 0), order, DEFAULT_FACTS)
        yield connection, replace(settings, containers=containers_of(config))
