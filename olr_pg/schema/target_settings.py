"""The applier's settings for work that does not go over the port: names and types in the target."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from olr_pg.appliance.appliance import applier_settings
from olr_pg.datatypes.convert import DatabaseFacts
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Snapshot


def settings_for(config: Config, snapshot: Snapshot, target: str) -> ApplierSettings:
    """Make the applier's settings: they say what things are called in the target."""
    assert config.apply is not None
    database = snapshot.database
    facts = DatabaseFacts(database.charset, database.ncharset, database.timezone)
    order = ByteOrder(config.port.byte_order)
    settings = applier_settings(config.apply, target, ("", 0), order, facts)
    return replace(settings, containers=database.containers)
