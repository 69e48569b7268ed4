"""The steps of a migration, and their states.

The states are stored in the target beside those of the cut-over, so they survive the loss of this
host. A completed step does not run again, except the step `replication` as long as later steps
remain. An interrupted or failed step runs again; each step can be repeated at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.load.steps_done import MIGRATION, StepState, note_step, read_steps

if TYPE_CHECKING:
    from psycopg import Connection


class MigrationStep(NamedTuple):
    """A step, with a description of what it does."""

    name: str
    title: str


STEPS: Final = (
    MigrationStep("doctor", "source, target and this machine fulfil the requirements"),
    MigrationStep(
        "schema", "schemas, sequences, tables, primary keys, checks and defaults are created"
    ),
    MigrationStep("load", "the tables are loaded, with their keys and indexes"),
    MigrationStep("indexes", "the other indexes are created"),
    MigrationStep("replication", "the changes since the load are applied"),
    MigrationStep("verify", "the tables are compared with the source"),
    MigrationStep("rest", "foreign keys, views and grants are created"),
)
"""The steps in order. After the last step, the target is ready for the cut-over."""


def migration_state(connection: Connection[Any], subscription: str) -> dict[str, StepState]:
    """Read the recorded steps, by name."""
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
