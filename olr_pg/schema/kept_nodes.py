"""The parts of a query that are the same in PostgreSQL, and those that it lacks."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

KEPT_FUNCTIONS: Final = frozenset(
    {
        *(exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Stddev, exp.StddevPop),
        *(exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Case, exp.If, exp.Cast, exp.Coalesce),
        *(exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile),
        *(exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Exists, exp.And),
        *(exp.Or, exp.Xor, exp.Abs, exp.Corr, exp.CovarPop, exp.CovarSamp, exp.Nullif),
    }
)
"""Functions and what sqlglot takes for one, with the same meaning in both."""

REFUSED_NODES: Final[dict[type[exp.Expr], str]] = {
    exp.Connect: "CONNECT BY: rewrite it as WITH RECURSIVE",
    exp.Prior: "CONNECT BY: rewrite it as WITH RECURSIVE",
    exp.ConnectByRoot: "CONNECT BY: rewrite it as WITH RECURSIVE",
    exp.Pivot: "PIVOT and UNPIVOT: rewrite them with CASE, or as a join",
    exp.MatchRecognize: "MATCH_RECOGNIZE has no like in PostgreSQL",
    exp.Version: "a flashback query: PostgreSQL keeps no old rows",
    exp.Partition: "it names a partition: partitions are tables of their own in PostgreSQL",
    exp.TableSample: "SAMPLE: TABLESAMPLE draws other rows",
    exp.Lock: "FOR UPDATE in a view",
    exp.JSONValue: "JSON_VALUE: PostgreSQL has it from 17 on, with other defaults",
    exp.Parameter: "it has binds",
    exp.Placeholder: "it has binds",
}
"""Why these are not translated."""

REFUSED_WORDS: Final = {
    "LEVEL": "CONNECT BY: rewrite it as WITH RECURSIVE",
    "ROWID": "ROWID: rows of PostgreSQL have no lasting address",
    "ORA_ROWSCN": "ORA_ROWSCN has no like in PostgreSQL",
    "UID": "UID has no like in PostgreSQL",
    "DBTIMEZONE": "DBTIMEZONE has no like in PostgreSQL",
    "CONNECT_BY_ISLEAF": "CONNECT BY: rewrite it as WITH RECURSIVE",
    "CONNECT_BY_ISCYCLE": "CONNECT BY: rewrite it as WITH RECURSIVE",
}
"""Pseudo-columns without a like."""
