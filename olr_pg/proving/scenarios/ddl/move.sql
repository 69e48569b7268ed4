-- purpose: MOVE writes all rows to other blocks: their ROWIDs change, but not their values
-- others: the new blocks look like a direct-path load; tools that read them insert every row again
-- covers: move
CREATE TABLE m (id NUMBER(4), v VARCHAR2(100));
INSERT INTO m SELECT LEVEL, RPAD('v' || LEVEL, 80, '.') FROM dual CONNECT BY LEVEL <= 200;
COMMIT;
-- start
DELETE FROM m WHERE MOD(id, 3) = 0;
COMMIT;
ALTER TABLE m MOVE;
UPDATE m SET v = 'after' WHERE id < 20;
DELETE FROM m WHERE id > 190;
INSERT INTO m VALUES (500, 'new');
COMMIT;
