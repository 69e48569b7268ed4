"""The status of tables, by what their applier knows."""

from __future__ import annotations

from dataclasses import replace

from olr_pg.appliance.status_observer import first_lacking
from olr_pg.monitor.status_values import PortStatus


def test_an_applier_without_a_session_lacks_what_it_has_not_confirmed() -> None:
    port = PortStatus("127.0.0.1:5000", saved_scn=40, taken_scn=90)
    assert first_lacking(port, 70) == 90
    assert first_lacking(replace(port, taken_scn=0), 70) == 71
    assert first_lacking(replace(port, taken_scn=0), 0) == 40
