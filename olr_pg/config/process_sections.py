"""Defines the sections `spark` and `log`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from olr_pg.config.fields import ConfigPath, Settings, SparkMaster
from olr_pg.config.section import Section


class Spark(Section):
    """`spark`: the Spark session in which the decode jobs run."""

    master: SparkMaster = Field(
        default="local[*,3]",
        description="the Spark master URL; `local[N,F]`: N cores (`*`: all cores), and each task is"
        " tried at most F times, so that the task of a killed worker is retried",
    )
    conf: Settings = Field(
        default_factory=dict, repr=False, description="an object: Spark properties"
    )
    results: ConfigPath | None = Field(
        default=None,
        description="a directory that the appliance and all workers of a Spark cluster share, for"
        " the decoded changes; without it, Spark's Java processes transfer the decoded"
        " changes",
    )


class Log(Section):
    """`log`: the level and the format of the log, which is written to stderr."""

    level: int = Field(
        default=3,
        ge=0,
        le=4,
        description="0: nothing; 1: only critical errors (they end the appliance, or stop a table"
        " or a target); 2: errors and warnings; 3: also information; 4: also"
        " debugging detail",
    )
    format: Literal["human", "json"] = Field(default="human", description="the form of a log line")
