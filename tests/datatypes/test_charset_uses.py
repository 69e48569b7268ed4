"""Every place where the character set of a column, or the text of Oracle's server, matters.

A column whose bytes have another set than the database declares has this set in `charset_id` and
the form 3 (`dictionary.true_charsets`). These lists say for each module how it follows; a new
module that uses a character set fails here until somebody decides.
"""

from __future__ import annotations

import ast

from tests.package_trees import modules_with

_SET_OF_COLUMN = "column_charset, lob_charset: the set of the column"
_PASSES_ON = "passes number and form on"
_NOT_TEXT = "asks only whether the column is national, or makes columns of its own"

USES = {
    # replication: decoded values become text
    "datatypes/convert.py": _SET_OF_COLUMN,  # the applier
    "datatypes/plain.py": _SET_OF_COLUMN,  # the applier's and the load's fast path
    "datatypes/json_values.py": _SET_OF_COLUMN,  # decode
    "rendering/json_forms.py": _SET_OF_COLUMN,  # decode, JSON Lines
    "rendering/line_plan.py": _SET_OF_COLUMN,
    "rendering/arrow_values.py": _SET_OF_COLUMN,  # Parquet, the data source
    "rendering/arrow_changes.py": _PASSES_ON,
    "conditions/typed_conditions.py": _SET_OF_COLUMN,  # filter.rows
    "transactions/lobs/assembly.py": "converts a CLOB only from UTF-16, to the set of the column; "
    + _PASSES_ON,
    "dictionary/decoding_plan.py": _PASSES_ON,
    "dictionary/lob_delivery.py": "form 3: the CLOB is delivered as it is stored",
    # the protocol
    "wire/element_plan.py": _PASSES_ON,
    "wire/elements.py": _PASSES_ON,
    # whole tables
    "load/arrow.py": "form 3: bytes keep the set of the column; text is UTF-8",
    "load/verification/digests.py": "the order of the column's set; form 3: binds bytes",
    "oracle/table_query.py": "form 3: reads bytes (oracle.text_bytes)",
    "oracle/lob_fetch.py": "form 3: reads the bytes of a CLOB",
    "oracle/text_byte_checks.py": "doctor: finds bytes that are not text of the set of the column",
    # prove and assess
    "proving/prove_run.py": "the sets are part of its dictionary; LogMiner shows converted text",
    "assessment/assessor.py": "counts columns by the origin of their set",
    # the way back
    "fallback/oracle_values.py": "form 3: writes bytes, or refuses the column",
    "fallback/oracle_writer.py": "form 3: checks before it begins that Oracle keeps all bytes",
    # the dictionary
    "dictionary/true_charsets.py": "sets number and form",
    "dictionary/model.py": _PASSES_ON,
    "dictionary/snapshot_file.py": "a file has the sets too",
    "dictionary/sys_rows.py": "rows of COL$, as declared",
    "dictionary/sys_tables.py": "rows of COL$, as declared; the follower sets number and form",
    "dictionary/evolution.py": "compares definitions, which all have their sets",
    "dictionary/inventory.py": _NOT_TEXT,
    "datatypes/charsets.py": "defines the sets",
    "datatypes/mapping.py": _NOT_TEXT,
    "schema/followed_steps.py": _NOT_TEXT,
    "applier/kernel_warmup.py": _NOT_TEXT,
    "bench/stored_messages.py": _NOT_TEXT,
}

SERVER_TEXT = {
    "oracle/table_query.py": "initial load, verify, repair, fetch-lobs, key ranges",
    "oracle/lob_fetch.py": "LOB values that the redo lacks",
    "oracle/text_byte_checks.py": "doctor",
    "fallback/oracle_writer.py": "the way back",
}
"""The modules with SQL on the rows of users."""

NO_ROWS = {
    "fallback/oracle_set_aside.py": "triggers, constraints and identity columns",
    "fallback/relation_plans.py": "names for oracle_writer",
    "load/cutover/cut_back.py": "sequences",
    "load/cutover/structure_check.py": "indexes and constraints",
}
"""The other modules that quote names for SQL."""

_NAMES = frozenset({"charset_id", "charset_form", "column_charset", "lob_charset", "is_explicit"})


def names_of(tree: ast.Module) -> set[str]:
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def test_every_module_that_uses_the_set_of_a_column_is_listed() -> None:
    using = {
        name
        for name, tree in modules_with("|".join(_NAMES))
        if not name.startswith("simulator/") and _NAMES & names_of(tree)
    }
    assert using ^ set(USES) == set()


def test_every_module_with_sql_on_tables_of_users_is_listed() -> None:
    """They quote names of tables, or of columns, in the SQL that they make."""
    quoting = {
        name
        for name, tree in modules_with("quoted")
        if name.startswith(("oracle/", "load/", "fallback/"))
        and any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "quoted"
            for node in ast.walk(tree)
        )
    }
    assert quoting ^ {*SERVER_TEXT, *NO_ROWS} == set()
