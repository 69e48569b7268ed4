"""Which columns can be replicated: by type, and what rules them out whatever the type."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.dictionary.column_support import LOB_TYPES, ROW_TYPES, unsupported_reason


def reason(code: int, **traits: Any) -> str | None:
    return unsupported_reason(
        code, **{"virtual": False, "encrypted": False, "lob_encrypted": False, **traits}
    )


def test_the_types_that_are_decoded_have_no_obstacle() -> None:
    assert {reason(code) for code in ROW_TYPES | LOB_TYPES} == {None}


@pytest.mark.parametrize(
    ("code", "said"), [(114, "BFILE"), (123, "VARRAY"), (111, "REF"), (250, "250 is not known")]
)
def test_other_types_are_named(code: int, said: str) -> None:
    assert said in (reason(code) or "")


@pytest.mark.parametrize(
    ("trait", "said"),
    [
        ("virtual", "never in redo"),
        ("encrypted", "TDE"),
        ("lob_encrypted", "cipher text"),
        ("lob_encrypted_in", "stored in True, so the redo contains only cipher text"),
    ],
)
def test_what_redo_does_not_hold_in_clear_is_refused(trait: str, said: str) -> None:
    assert said in (reason(2, **{trait: True}) or "")
