"""``olr-pg simulate --sql``: a file of SQL carried out, and a server that takes more."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from olr_pg.cli.printing import print_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.oracle_net.server import StandIn
    from olr_pg.simulator.simulated_files import Summary


def simulate_sql(seed: int, out: Path, file: Path, shape: DatabaseShape) -> Summary:
    """Carry out the SQL of a file; return the extent of what was written."""
    from olr_pg.proving.scenario import read_scenario
    from olr_pg.simulator.sql.recorded_files import simulate_script

    scenario = read_scenario(file)
    return simulate_script(seed, out, shape, scenario.steps, scenario.start)


@contextmanager
def serving_sql(
    seed: int, out: Path, file: Path, shape: DatabaseShape, place: tuple[int, float]
) -> Iterator[StandIn]:
    """Carry out the SQL of a file, and take more on a port within the context.

    Args:
        place: the port, and the seconds after which a log is switched.
    """
    from olr_pg.proving.scenario import read_scenario
    from olr_pg.simulator.oracle_net.sql_serving import SqlServer
    from olr_pg.simulator.sql.scripts import run_script

    scenario = read_scenario(file)
    port, seconds = place
    with SqlServer(seed, out, shape, port=port, switch_seconds=seconds) as served:
        run_script(served.database, scenario.steps)
        print_line(f"SQL of {served.database.owner}, with the password olr")
        yield served.server
