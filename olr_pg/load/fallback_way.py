"""Makes the fallback from a configuration: its account in Oracle, its tables, and the conversion of
values.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from olr_pg.appliance.encryption import row_key
from olr_pg.appliance.opened_target import open_target
from olr_pg.appliance.target import target_directory
from olr_pg.applier.settings import ConflictPolicy
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.oracle_values import ValueSettings, oracle_column
from olr_pg.fallback.way_back import WayBack
from olr_pg.files.sealed import sealing
from olr_pg.load import sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.applier.target.catalogue import TargetColumn
    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Column
    from olr_pg.fallback.way_back import ValueColumn
    from olr_pg.load.table_data import TableSource

SPOOL: Final = "fallback"
"""The directory for large transactions, below the target's."""


@contextmanager
def open_way_back(config: Config) -> Iterator[WayBack]:
    """Open the fallback of a configuration with one target, and the key of encrypted files.

    Raises:
        OlrPgError: 1091 there is no target, 1135 `fallback` has no account, 1190 the key cannot be
            used, 3xxx and 7xxx the dictionary.
    """
    with ExitStack() as stack:
        stack.enter_context(sealing(row_key(config)))
        source = stack.enter_context(sources.open_tables(config))
        target = open_target(sources.apply_section(config), target_directory(config), stack)
        yield way_back(config, source, target)


def way_back(config: Config, source: TableSource, target: str) -> WayBack:
    """Return the parts of the fallback.

    Args:
        target: the connect string.

    Raises:
        OlrPgError: 1090 the source has several containers, 1135 there is no account.
    """
    apply, fallback, account = (
        sources.apply_section(config), config.way_back, config.fallback_source,
    )  # fmt: skip
    if account.containers:
        raise OlrPgError(Code.NOT_SUPPORTED, "there is no way back into several containers yet")
    settings = ValueSettings.of(fallback.policies, apply, source.snapshot.database)

    def value_column(table: str, column: Column, typed: TargetColumn) -> ValueColumn:
        return oracle_column(table, column, typed.kind, settings)

    directory = target_directory(config) / SPOOL
    directory.mkdir(parents=True, exist_ok=True)
    return WayBack(
        source=account,
        connect_string=target,
        subscription=apply.subscription,
        slot=fallback.slot_of(apply.subscription),
        publication=fallback.publication_of(apply.subscription),
        tables=source.choose(()),
        settings=sources.target_settings(config, source.snapshot, target),
        value_column=value_column,
        directory=directory,
        batch_changes=apply.batch_changes,
        conflict=ConflictPolicy(fallback.on_conflict),
    )
