from __future__ import annotations

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net.faults import Fault, Faults


def test_a_fault_strikes_where_its_text_is_and_as_often_as_it_says() -> None:
    faults = Faults()
    twice = faults.add(Fault("execute", "obj$", times=2))
    assert faults.take("fetch", "SELECT * FROM OBJ$") is None
    assert faults.take("execute", "SELECT * FROM TAB$") is None
    assert faults.take("execute", "SELECT * FROM OBJ$") is twice
    assert faults.take("execute", "SELECT * FROM OBJ$") is twice
    assert faults.take("execute", "SELECT * FROM OBJ$") is None
    assert twice.hits == 2


def test_a_fault_without_a_count_strikes_until_all_are_cleared() -> None:
    faults = Faults()
    always = faults.add(Fault("connect", times=0))
    assert [faults.take("connect") for _ in range(5)] == [always] * 5
    faults.clear()
    assert faults.take("connect") is None


def test_an_error_has_its_number_in_its_words() -> None:
    assert str(OraError(942, "table or view does not exist")).startswith("ORA-00942: ")
