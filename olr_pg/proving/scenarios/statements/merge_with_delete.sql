-- purpose: MERGE … DELETE WHERE updates a row and deletes it in the same statement
-- covers: merge
-- same: no, PostgreSQL has no DELETE WHERE behind UPDATE
CREATE TABLE stock (id NUMBER(4) PRIMARY KEY, n NUMBER(6));
INSERT INTO stock SELECT LEVEL, LEVEL * 10 FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
MERGE INTO stock s USING (SELECT LEVEL + 2 AS id, LEVEL AS n FROM dual CONNECT BY LEVEL <= 4) d ON (s.id = d.id) WHEN MATCHED THEN UPDATE SET s.n = s.n - 40 * d.n DELETE WHERE s.n < 0 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (d.id, d.n) WHERE d.n < 10;
COMMIT;
