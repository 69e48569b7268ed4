-- purpose: a queue whose workers take rows with FOR UPDATE SKIP LOCKED and NOWAIT
-- covers: for-update
-- same: no, it needs two sessions
CREATE TABLE q (id NUMBER(4) PRIMARY KEY, state VARCHAR2(10)) ROWDEPENDENCIES;
INSERT INTO q SELECT LEVEL, 'new' FROM dual CONNECT BY LEVEL <= 6;
COMMIT;
-- start
SELECT id FROM q WHERE id <= 2 FOR UPDATE;
-- session: B
SELECT id FROM q WHERE id <= 4 FOR UPDATE SKIP LOCKED;
UPDATE q SET state = 'B' WHERE id IN (3, 4);
-- error: ORA-00054
SELECT id FROM q WHERE id = 1 FOR UPDATE NOWAIT;
COMMIT;
-- session: A
UPDATE q SET state = 'A' WHERE id <= 2;
COMMIT;
