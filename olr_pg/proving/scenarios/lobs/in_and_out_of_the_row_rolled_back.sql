-- purpose: LOB values move into the row and out of it, and ROLLBACK TO SAVEPOINT undoes it
-- others: tools remove another change of the same row than the one that is undone
-- covers: savepoints lob-rolled-back
-- same: no, PostgreSQL has no EMPTY_CLOB
CREATE TABLE d (id NUMBER(9) PRIMARY KEY, data CLOB);
CREATE TABLE d2 (id NUMBER(9) PRIMARY KEY, data CLOB, b BLOB, v VARCHAR2(10));
-- start
INSERT INTO d (id, data) VALUES (1, '1');
SAVEPOINT s1;
UPDATE d SET data = RPAD('out-of-line', 1985, '+') WHERE id = 1;
ROLLBACK TO s1;
COMMIT;
INSERT INTO d (id, data) VALUES (2, RPAD('out-of-line', 1985, '+'));
SAVEPOINT s1;
UPDATE d SET data = 'in' WHERE id = 2;
ROLLBACK TO s1;
COMMIT;
UPDATE d SET data = RPAD('a', 2500, 'b') WHERE id = 1;
SAVEPOINT s1;
UPDATE d SET data = RPAD('c', 2500, 'd') WHERE id = 1;
SAVEPOINT s2;
UPDATE d SET data = NULL WHERE id = 1;
ROLLBACK TO s1;
COMMIT;
UPDATE d SET data = EMPTY_CLOB() WHERE id = 1;
SAVEPOINT s1;
DELETE FROM d WHERE id = 1;
ROLLBACK TO s1;
UPDATE d SET data = 'after' WHERE id = 2;
COMMIT;
INSERT INTO d2 VALUES (1, RPAD('a', 3000, 'b'), HEXTORAW('00'), 'v');
INSERT INTO d2 VALUES (2, 'small', NULL, 'w');
SAVEPOINT s1;
INSERT INTO d2 VALUES (3, RPAD('c', 3000, 'd'), HEXTORAW('11'), 'x');
UPDATE d2 SET data = RPAD('e', 3000, 'f'), v = 'vv' WHERE id = 1;
UPDATE d2 SET data = 'tiny', b = HEXTORAW('FF') WHERE id = 2;
ROLLBACK TO s1;
UPDATE d2 SET v = 'kept' WHERE id = 1;
INSERT INTO d2 VALUES (3, 'other', NULL, 'y');
COMMIT;
