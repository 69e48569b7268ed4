"""``olr-pg simulate --sql``: executes a file of SQL, and can serve a port that executes more
SQL.
"""

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
    """Execute a file of SQL; return a summary of the written files."""
    from olr_pg.proving.scenario import read_scenario
    from olr_pg.simulator.sql.recorded_files import simulate_script

    scenario = read_scenario(file)
    return simulate_script(seed, out, shape, scenario.steps, scenario.start)


@contextmanager
def serving_sql(
    seed: int, out: Path, file: Path, shape: DatabaseShape, place: tuple[int, float]
) -> Iterator[StandIn]:
    """Execute a file of SQL; while the context is active, serve a port that executes more SQL.

    Args:
        place: the port, and the number of seconds between log switches.
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
