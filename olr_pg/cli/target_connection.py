"""The target of a command that needs nothing else: a connection, and the settings for applying."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from olr_pg.cli.load import read_config
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.config.model import Config


@contextmanager
def open_settings(
    path: Path, name: str | None
) -> Iterator[tuple[Connection[Any], ApplierSettings]]:
    """Open a connection to the target of a configuration file; see `open_target_of`."""
    with open_target_of(read_config(path, name)) as opened:
        yield opened


@contextmanager
def open_target_of(config: Config) -> Iterator[tuple[Connection[Any], ApplierSettings]]:
    """Open a connection to the target, with the settings for applying there.

    Args:
        config: of one target by itself.

    Raises:
        OlrPgError: 1091 it has no target, 5003 the target cannot be reached, 5015 its ledger.
    """
    import psycopg

    from olr_pg.appliance.appliance import applier_settings, open_target
    from olr_pg.appliance.target import target_directory
    from olr_pg.applier.target.connection import connect, unreachable
    from olr_pg.applier.target.ledger import ensure_ledger
    from olr_pg.datatypes.convert import DEFAULT_FACTS
    from olr_pg.wire.frames import ByteOrder

    if config.apply is None:
        raise OlrPgError(Code.NO_TARGET, "there is no `apply` section")
    with ExitStack() as stack:
        target = open_target(config.apply, target_directory(config), stack)
        order = ByteOrder(config.port.byte_order)
        # The facts of the source are kept with what is held.
        settings = applier_settings(config.apply, target, ("", 0), order, DEFAULT_FACTS)
        try:
            with connect(target, replica=settings.is_replica) as connection:
                ensure_ledger(connection)
                yield connection, settings
        except psycopg.OperationalError as error:
            raise unreachable(error) from error
