-- purpose: values of unique indexes, which are no constraints, change hands within a statement
-- others: appliers that replay row by row violate the index
-- covers: key-swaps
-- same: no, PostgreSQL checks unique indexes row by row
CREATE TABLE us (id NUMBER(6) PRIMARY KEY, u VARCHAR2(10), f VARCHAR2(10), c CLOB);
CREATE UNIQUE INDEX us_u ON us (u);
CREATE UNIQUE INDEX us_f ON us (f);
INSERT INTO us VALUES (1, 'a', 'x', 'one');
INSERT INTO us VALUES (2, 'b', 'y', 'two');
INSERT INTO us VALUES (3, 'c', 'z', 'three');
COMMIT;
-- start
UPDATE us SET u = CASE u WHEN 'a' THEN 'b' WHEN 'b' THEN 'c' ELSE 'a' END;
COMMIT;
UPDATE us SET f = CASE f WHEN 'x' THEN 'y' WHEN 'y' THEN 'x' ELSE f END;
COMMIT;
UPDATE us SET u = NULL WHERE id = 1;
UPDATE us SET u = 'b' WHERE id = 2;
UPDATE us SET u = 'c' WHERE id = 1;
COMMIT;
DELETE FROM us WHERE id = 3;
INSERT INTO us VALUES (4, 'a', 'z', 'four');
COMMIT;
UPDATE us SET id = 5 - id, u = CASE u WHEN 'a' THEN 'c' WHEN 'c' THEN 'a' ELSE u END;
COMMIT;
