"""Random statements that mean the same to Oracle and to PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

ORACLE_TABLES: Final = (
    (
        "CREATE TABLE p (id NUMBER(4) PRIMARY KEY, name VARCHAR2(12 CHAR) UNIQUE,"
        " n NUMBER(8,2) DEFAULT 1.5 NOT NULL)"
    ),
    (
        "CREATE TABLE t (id NUMBER(6) PRIMARY KEY, a VARCHAR2(30 CHAR), b NUMBER(10,2), d DATE,"
        " e TIMESTAMP(6), c CLOB, p NUMBER(4) REFERENCES p ON DELETE {delete}, CHECK (b < 90000))"
    ),
    "CREATE INDEX t_p ON t (p)",
)
POSTGRES_TABLES: Final = (
    (
        "CREATE TABLE p (id numeric(4) PRIMARY KEY, name varchar(12) UNIQUE DEFERRABLE,"
        " n numeric(8,2) DEFAULT 1.5 NOT NULL)"
    ),
    (
        "CREATE TABLE t (id numeric(6) PRIMARY KEY DEFERRABLE, a varchar(30), b numeric(10,2),"
        " d timestamp(0), e timestamp(6), c text, p numeric(4) REFERENCES p ON DELETE {delete},"
        " CHECK (b < 90000))"
    ),
    "CREATE INDEX t_p ON t (p)",
)
"""Keys are deferrable there so that a statement's end counts, as in Oracle."""

SAME: Final = {
    1: "23505", 1400: "23502", 1407: "23502", 2290: "23514", 2291: "23503", 2292: "23503",
    12899: "22001", 1438: "22003", 1427: "21000", 30926: "21000", 1476: "22012",
}  # fmt: skip
"""SQLSTATE by ORA number."""

_WORDS: Final = ("ant", "bee", "Cat", "dög", "eel", "żaba", "gnu", "hen", "ibis-ibis", "x")


class Statements:
    """Draws statements."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def transaction(self) -> list[str]:
        """Draw a transaction; the last statement ends it."""
        rng, drawn, points = self._rng, list[str](), list[str]()
        for _ in range(rng.randint(1, 8)):
            choice = rng.random()
            if choice < 0.12:
                points.append(f"s{len(points)}")
                drawn.append(f"SAVEPOINT {points[-1]}")
            elif choice < 0.2 and points:
                del points[rng.randrange(len(points)) + 1 :]
                drawn.append(f"ROLLBACK TO SAVEPOINT {points[-1]}")
            else:
                drawn.append(self.change())
        return [*drawn, "COMMIT" if rng.random() < 0.85 else "ROLLBACK"]

    def change(self) -> str:
        rng = self._rng
        return rng.choice(
            (self._insert, self._insert, self._insert_query, self._update, self._update,
             self._delete, self._merge, self._parent, self._swap)
        )()  # fmt: skip

    def _id(self) -> str:
        return str(self._rng.randint(1, 60))

    def _parent_id(self) -> str:
        return self._rng.choice(("NULL", *(str(number) for number in range(1, 9))))

    def _word(self) -> str:
        return "'" + self._rng.choice(_WORDS) + "'"

    def _words(self) -> str:
        """May be too long; PostgreSQL fails on such a constant even where no row is concerned."""
        return "'" + self._rng.choice(_WORDS) * self._rng.choice((1, 1, 1, 2, 8)) + "'"

    def _number(self) -> str:
        rng = self._rng
        return rng.choice((
            str(rng.randint(-999, 999)), f"{rng.uniform(-99, 99):.3f}", "NULL", "b", "b + 1.25",
            "b * -2", "MOD(id, 7)", "ABS(b)", "COALESCE(b, 0) + id", "ROUND(b)", "80000 + id * 9",
            "LENGTH(a)", "CASE WHEN b > 0 THEN b ELSE id END", "SIGN(b)", "FLOOR(b)",
        ))  # fmt: skip

    def _text(self) -> str:
        return self._rng.choice((
            self._word(), "NULL", "UPPER(a)", "COALESCE(a, 'none') || id",
            "NULLIF(SUBSTR(a, 2, 3), '')",
            "REPLACE(a, 'e', 'ee')", "LPAD(a, 7, '.')", "a", "TRIM(a)", "COALESCE(LOWER(a), 'z')",
        ))  # fmt: skip

    def _moment(self) -> str:
        rng = self._rng
        day = f"{rng.randint(1990, 2040)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        return rng.choice((
            "NULL", f"DATE '{day}'",
            f"TIMESTAMP '{day} {rng.randint(0, 23):02}:59:0{rng.randint(0, 9)}'",
        ))  # fmt: skip

    def _fraction(self) -> str:
        rng = self._rng
        return rng.choice((
            "NULL", "e",
            f"TIMESTAMP '2024-02-29 11:22:33.{rng.randrange(10**6):06}'",
        ))  # fmt: skip

    def _large(self) -> str:
        rng = self._rng
        return rng.choice(("NULL", self._word(), f"'{rng.choice('äbc') * rng.choice((40, 3000))}'"))

    def _condition(self) -> str:
        rng = self._rng
        simple = rng.choice((
            f"id = {self._id()}", f"id BETWEEN {self._id()} AND {self._id()}", "b > 0", "b IS NULL",
            f"id IN ({self._id()}, {self._id()}, {self._id()})", "a LIKE '%e%'", "a IS NOT NULL",
            f"p = {rng.randint(1, 8)}", "p IN (SELECT id FROM p WHERE n > 1)",
            f"a > {self._word()}",
            "EXISTS (SELECT 1 FROM p x WHERE x.id = t.p AND x.name LIKE 'b%')", "MOD(id, 3) = 1",
            "NOT (b < 10)", "d < DATE '2020-01-01'", "b = (SELECT MAX(b) FROM t)",
        ))  # fmt: skip
        if rng.random() < 0.25:
            return f"({simple}) {rng.choice(('AND', 'OR', 'AND NOT'))} ({self._condition()})"
        return simple

    def _insert(self) -> str:
        number = self._rng.choice((self._id(), self._id(), str(self._rng.randint(100, 999))))
        values = [number, self._words(), f"{self._rng.uniform(-9, 99):.2f}", self._moment(),
                  "NULL", self._large(), self._parent_id()]  # fmt: skip
        return f"INSERT INTO t (id, a, b, d, e, c, p) VALUES ({', '.join(values)})"

    def _insert_query(self) -> str:
        return (f"INSERT INTO t (id, a, b, p) SELECT id + {self._rng.choice((100, 500, 1))}, a, b,"
                f" p FROM t WHERE {self._condition()}")  # fmt: skip

    def _update(self) -> str:
        rng = self._rng
        drawn = {"a": self._text, "b": self._number, "d": self._moment, "e": self._fraction,
                 "c": self._large, "p": self._parent_id}  # fmt: skip
        chosen = rng.sample(sorted(drawn), rng.randint(1, 3))
        parts = [f"{name} = {drawn[name]()}" for name in chosen]
        if rng.random() < 0.15:
            parts = ["(a, b) = (SELECT name, n FROM p WHERE p.id = t.p)"]
        return f"UPDATE t SET {', '.join(parts)} WHERE {self._condition()}"

    def _swap(self) -> str:
        low = self._rng.randint(1, 50)
        return f"UPDATE t SET id = {2 * low + 5} - id WHERE id BETWEEN {low} AND {low + 5}"

    def _delete(self) -> str:
        return f"DELETE FROM t WHERE {self._condition()}"

    def _merge(self) -> str:
        return (
            f"MERGE INTO t USING (SELECT id AS k, name AS w, n FROM p WHERE id < {self._id()}) s"
            f" ON (t.id = s.k) WHEN MATCHED THEN UPDATE SET b = s.n + t.id, a = s.w"
            " WHEN NOT MATCHED THEN INSERT (id, a, p) VALUES (s.k, s.w, s.k)"
        )

    def _parent(self) -> str:
        rng = self._rng
        number = rng.randint(1, 9)
        return rng.choice((
            f"INSERT INTO p (id, name) VALUES ({number}, {self._words()})",
            f"INSERT INTO p VALUES ({number}, 'p{number}', {number}.5)",
            f"DELETE FROM p WHERE id = {number}",
            f"UPDATE p SET n = n + 1 WHERE id < {number}",
            f"UPDATE p SET id = id + 1 WHERE id = {number}",
            f"UPDATE p SET name = {self._word()} WHERE id = {number}",
            "UPDATE p SET n = NULL",
        ))  # fmt: skip
