"""Returns the applier's settings, with names and types in the target, for commands that do not
connect to the port.
"""

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
    """Return the applier's settings with the names of all objects in the target."""
    assert config.apply is not None
    database = snapshot.database
    facts = DatabaseFacts(database.charset, database.ncharset, database.timezone)
    order = ByteOrder(config.port.byte_order)
    settings = applier_settings(config.apply, target, ("", 0), order, facts)
    return replace(settings, containers=database.containers)
