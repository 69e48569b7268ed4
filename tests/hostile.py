"""Names and texts that would do harm if something took them for anything but a name or a text.

Each of them leaves the mark `MARK` where it is executed: a table in PostgreSQL, or a file.
"""

from __future__ import annotations

from typing import Final

MARK: Final = "taken_over"
_TABLE: Final = f"CREATE TABLE public.{MARK} ()"
_FILE: Final = f"touch {MARK}"

SQL: Final = {
    "ends a name": f'x"; {_TABLE}; --',
    "ends a text": f"x'; {_TABLE}; --",
    "ends a text after a backslash": f"x\\'; {_TABLE}; --",
    "ends dollar quotes": f"x$$ $olr_pg$ $body$; {_TABLE}; --",
    "ends a comment": f"x */; {_TABLE}; /*",
    "ends a line": f"x\n{_TABLE};\n\\! {_FILE}\n\\echo `{_FILE}`\n--",
    "ends a line elsewhere": f"x\r{_TABLE};\r\\! {_FILE}\r\x0b\x0c\x85\u2028{_TABLE};",
    "ends an expression": f"1); {_TABLE}; --",
}
"""For SQL, PL/SQL and psql."""

OTHERS: Final = {
    "formats": f"%s %(name)s {{0}} {{name}} ${{HOME}} :1 :name ? ` `{_FILE}` $({_FILE}) ; {_FILE}",
    "markup": '</script></title>"\'><img src=x onerror="alert(1)"><script>alert(1)</script>&lt;',
    "path": f"../../../../{MARK}",
    "terminal": "\x1b]0;owned\x07\x1b[2J\r\x9b31m\u202egnp.exe",
    "log line": "x\n2026-01-01T00:00:00Z [error    ] forged code=OLR-00000",
    "formula": f'=cmd|"/C {_FILE}"!A1',
    "option": "--config=/dev/null",
}
"""For format strings, shells, pages, paths, terminals, logs, spreadsheets and command lines."""

TEXTS: Final = SQL | OTHERS
