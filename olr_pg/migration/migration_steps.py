"""The steps of a migration, and how far they are.

Their states are kept in the target beside those of the cut-over, so they survive this machine. A
step that is done is not done again, but for replication while there is something left to do; one
that was broken off or failed is begun again, and each may be begun again at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.load.cutover.steps_done import MIGRATION, StepState, note_step, read_steps

if TYPE_CHECKING:
    from psycopg import Connection


class MigrationStep(NamedTuple):
    """A step: what it sees to."""

    name: str
    title: str


STEPS: Final = (
    MigrationStep("doctor", "source, target and this machine are as they must be"),
    MigrationStep(
        "schema", "schemas, sequences, tables, primary keys, checks and defaults are made"
    ),
    MigrationStep("load", "the tables are loaded, with their keys and indexes"),
    MigrationStep("indexes", "the other indexes are made"),
    MigrationStep("replication", "what has changed meanwhile is applied"),
    MigrationStep("verify", "the tables are compared with the source's"),
    MigrationStep("rest", "foreign keys, views and grants are made"),
)
"""Behind the last one the target is ready to be cut over to."""


def migration_state(connection: Connection[Any], subscription: str) -> dict[str, StepState]:
    """Read the steps that have begun, by name."""
    found = read_steps(connection, subscription)
    return {
        name.removeprefix(MIGRATION): state._replace(step=name.removeprefix(MIGRATION))
        for name, state in found.items()
        if name.startswith(MIGRATION)
    }


def note_migration(
    connection: Connection[Any], subscription: str, step: str, state: str, detail: dict[str, Any]
) -> None:
    """Store the state of a step in the target."""
    note_step(connection, subscription, MIGRATION + step, state, detail)
