"""The applier's settings: which policy holds for a column."""

from __future__ import annotations

from olr_pg.applier.settings import ApplierSettings, IncompletePolicy


def test_the_first_pattern_that_fits_holds() -> None:
    settings = ApplierSettings(
        connect_string="", host="", port=0, table_query="",
        incomplete={"S.T.DOC": IncompletePolicy.STOP, "s.*": IncompletePolicy.NULL,
                    "*": IncompletePolicy.STOP},
    )  # fmt: skip
    assert settings.incomplete_policy("S.T", "DOC") is IncompletePolicy.STOP
    assert settings.incomplete_policy("S.T", "OTHER") is IncompletePolicy.NULL
    assert settings.incomplete_policy("U.T", "DOC") is IncompletePolicy.STOP


def test_without_a_pattern_the_value_is_null() -> None:
    settings = ApplierSettings(connect_string="", host="", port=0, table_query="")
    assert settings.incomplete_policy("S.T", "DOC") is IncompletePolicy.NULL
