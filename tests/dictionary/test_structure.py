"""Keys, indexes and sequences as documents: what is no valid one is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from olr_pg.dictionary.structure import INT64_MAX, ForeignKey, Index, Sequence, Structure, UniqueKey

OF_ORDERS: dict[str, Any] = {"owner": "SHOP", "table": "ORDERS", "name": "N"}


def test_names_are_those_of_the_tables() -> None:
    key = ForeignKey.model_validate(FOREIGN)
    assert (key.full_name, key.parent_name) == ("SHOP.ORDERS", "HR.P")
    assert Sequence(owner="SHOP", name="S", next=1).full_name == "SHOP.S"


def test_it_comes_back_from_json() -> None:
    structure = Structure(
        unique_keys=(UniqueKey(**OF_ORDERS, columns=("A", "B")),),
        indexes=(Index(**OF_ORDERS, columns=("B", "A"), unique=True),),
        sequences=(Sequence(owner="SHOP", name="S", next=-5, increment=-1, minimum=-9),),
    )
    assert Structure.model_validate_json(structure.model_dump_json()) == structure


FOREIGN: dict[str, Any] = {
    **OF_ORDERS, "columns": ("C",), "parent_owner": "HR", "parent": "P", "parent_columns": ("ID",),
}  # fmt: skip


@pytest.mark.parametrize(
    ("model", "document"),
    [
        (UniqueKey, {**OF_ORDERS, "columns": ()}),
        (Index, {**OF_ORDERS, "columns": ("A",), "unique": "yes"}),
        (Index, {**OF_ORDERS, "columns": ("A",), "colour": "red"}),
        (Sequence, {"owner": "SHOP", "name": "S", "next": INT64_MAX + 1}),
        (Sequence, {"owner": "SHOP", "name": "S", "next": 1, "cache": -1}),
        (ForeignKey, {**FOREIGN, "on_delete": "restrict"}),
    ],
    ids=["no column", "no bool", "unknown key", "65 bits", "negative cache", "unknown action"],
)
def test_what_is_none_is_refused(model: type[BaseModel], document: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(document)
