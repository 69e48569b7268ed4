"""Defines the section `verify`: continuous verification."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from olr_pg.config.section import Section


class Verify(Section):
    """`verify`: whether and how `run` also compares the target's rows with the source's rows."""

    continuous: Literal["off", "report", "repair"] = Field(
        default="off",
        description="compare the tables of the target with the source, one after the other,"
        " repeatedly. report: report differing rows; repair: also repair them",
    )
    share: float = Field(
        default=10.0, gt=0, le=100, description="maximum percentage of the time of one core"
    )
    rows_per_second: float | None = Field(
        default=None,
        ge=1,
        description="maximum number of rows per second that are read from the source; null: no"
        " limit",
    )
    lag_max: float = Field(
        default=60.0,
        ge=0,
        description="seconds; the more a table lags behind, the less is compared; from this lag on,"
        " nothing is compared",
    )
    repairs_per_hour: int = Field(
        default=100,
        ge=1,
        description="maximum number of rows that are repaired in an hour; if more rows differ, the"
        " repairs end, and the status page reports it",
    )
