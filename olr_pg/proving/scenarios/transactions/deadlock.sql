-- purpose: a deadlock rolls back one statement, not its transaction
-- covers: fail-halfway, interleaved
-- same: no, PostgreSQL ends the transaction with an error
CREATE TABLE d (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO d VALUES (1, 'start');
INSERT INTO d VALUES (2, 'start');
COMMIT;
-- start
UPDATE d SET v = 'A' WHERE id = 1;
-- session: B
UPDATE d SET v = 'B' WHERE id = 2;
-- session: A
-- error: ORA-00060
UPDATE d SET v = 'A' WHERE id = 2;
-- session: B
UPDATE d SET v = 'B' WHERE id = 1;
-- session: A
COMMIT;
-- session: B
COMMIT;
