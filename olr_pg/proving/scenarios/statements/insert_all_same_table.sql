-- purpose: INSERT ALL inserts several rows into one table for each row of the query
-- covers: insert-all
-- same: no, PostgreSQL has no INSERT of several tables
CREATE TABLE q (year NUMBER(4), no NUMBER(1), amount NUMBER(8,2), CONSTRAINT q_pk PRIMARY KEY (year, no));
CREATE TABLE y (year NUMBER(4) PRIMARY KEY, a NUMBER(8,2), b NUMBER(8,2));
INSERT INTO y SELECT 2000 + LEVEL, LEVEL * 10, LEVEL * 11 FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
INSERT ALL INTO q VALUES (year, 1, a) INTO q VALUES (year, 2, b) SELECT year, a, b FROM y;
COMMIT;
-- error: ORA-00001
INSERT ALL INTO q VALUES (year + 100, 1, a) INTO q VALUES (year + 100, 1, b) SELECT year, a, b FROM y;
DELETE FROM q WHERE no = 1 AND amount > 30;
COMMIT;
