"""``olr-pg``, which persists what is open at the end of each log, and decodes without Spark."""

from __future__ import annotations

import pytest

from olr_pg.appliance import appliance
from olr_pg.cli.main import run
from tests.simulation.entry import recovery_at_each_log, spark_or_not

if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        spark_or_not(patch, None)
        patch.setattr(appliance, "BoundedRecovery", recovery_at_each_log)
        run()
