from __future__ import annotations

import pytest

from olr_pg.dictionary.oracle_schemas import is_oracle_schema


@pytest.mark.parametrize("owner", ["SYS", "SYSTEM", "XDB", "SYS$UMF", "XS$NULL", "APEX_230200"])
def test_schemas_of_oracle(owner: str) -> None:
    assert is_oracle_schema(owner)


@pytest.mark.parametrize("owner", ["OLR_TEST", "sys", "SYSTEM2", "APEX_DATA", "APEX_2302001"])
def test_schemas_of_users(owner: str) -> None:
    assert not is_oracle_schema(owner)
