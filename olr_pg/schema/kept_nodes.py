"""Lists the nodes of Oracle's syntax tree that mean the same in PostgreSQL, and the nodes that
PostgreSQL does not have.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

_ORDERED: Final = frozenset({"this", "desc", "nulls_first"})
_QUERY: Final = frozenset({"order", "limit", "offset", "with_"})

KEPT_NODES: Final[dict[type[exp.Expr], frozenset[str]]] = {
    exp.Select: _QUERY
    | {"expressions", "distinct", "from_", "joins", "where", "group", "having"}
    | {"kind", "operation_modifiers"},
    **dict.fromkeys(
        (exp.Union, exp.Except, exp.Intersect), _QUERY | {"this", "expression", "distinct"}
    ),
    exp.Subquery: frozenset({"this", "alias"}),
    exp.With: frozenset({"expressions", "recursive", "search"}),
    exp.RecursiveWithSearch: frozenset({"kind", "this", "expression"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.From: frozenset({"this"}),
    exp.Join: frozenset({"this", "on", "using", "side", "kind", "method"}),
    exp.Lateral: frozenset({"this", "alias"}),
    exp.Table: frozenset({"this", "db", "alias"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Where: frozenset({"this"}),
    exp.Having: frozenset({"this"}),
    exp.Group: frozenset({"expressions"}),
    exp.Rollup: frozenset({"expressions"}),
    exp.Cube: frozenset({"expressions"}),
    exp.GroupingSets: frozenset({"expressions"}),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: _ORDERED,
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Fetch: frozenset({"direction", "count", "limit_options"}),
    exp.LimitOptions: frozenset({"rows", "with_ties"}),
    exp.Distinct: frozenset({"expressions"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Null: frozenset(),
    exp.Boolean: frozenset({"this"}),
    exp.Star: frozenset(),
    exp.Var: frozenset({"this"}),
    exp.Paren: frozenset({"this"}),
    exp.Tuple: frozenset({"expressions"}),
    exp.And: frozenset({"this", "expression"}),
    exp.Or: frozenset({"this", "expression"}),
    exp.Not: frozenset({"this"}),
    exp.Neg: frozenset({"this"}),
    exp.Exists: frozenset({"this"}),
    exp.Any: frozenset({"this"}),
    exp.All: frozenset({"this"}),
    exp.If: frozenset({"this", "true"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side", "exclude"}),
    exp.DataType: frozenset({"this", "expressions", "nested"}),
    exp.DataTypeParam: frozenset({"this", "expression"}),
}
"""The nodes that mean the same in both databases, with the arguments that they may have. A node
that is neither translated nor listed here is refused.
"""

_CONNECT: Final = "a part of CONNECT BY in an unsupported place: use WITH RECURSIVE"

REFUSED_NODES: Final[dict[type[exp.Expr], str]] = {
    exp.MatchRecognize: "MATCH_RECOGNIZE has no equivalent in PostgreSQL",
    exp.Version: "a flashback query: PostgreSQL does not keep old row versions",
    exp.Partition: "it reads a partition by name: in PostgreSQL, partitions are separate tables",
    exp.TableSample: "SAMPLE: TABLESAMPLE of PostgreSQL selects other rows",
    exp.Lock: "FOR UPDATE in a view or a subquery",
    exp.Parameter: "it has bind variables",
    exp.Placeholder: "it has bind variables",
    exp.Collate: "COLLATE: use a collation of PostgreSQL",
}
"""Nodes that are refused, and the reason that the user reads."""

REFUSED_WORDS: Final = {
    "LEVEL": _CONNECT,
    "ROWID": "ROWID: rows in PostgreSQL have no permanent address; use the key",
    "ORA_ROWSCN": "ORA_ROWSCN has no equivalent in PostgreSQL",
    "UID": "UID has no equivalent in PostgreSQL",
    "DBTIMEZONE": "DBTIMEZONE has no equivalent in PostgreSQL",
    "CONNECT_BY_ISLEAF": _CONNECT,
    "CONNECT_BY_ISCYCLE": _CONNECT,
    "SQLCODE": "SQLCODE: PostgreSQL has no numbers of Oracle's errors; use SQLSTATE",
}
"""Pseudo-columns that PostgreSQL does not have, and the reason that the user reads."""
