-- purpose: sessions of two instances change the same rows alternately: the redo is in two threads
-- others: readers that merge threads by reading time instead of SCN change the order
-- covers: redo-threads
-- needs: rac
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO t SELECT LEVEL, 'start' FROM dual CONNECT BY LEVEL <= 6;
COMMIT;
-- start
-- session: A
UPDATE t SET v = 'A1' WHERE id = 1;
COMMIT;
-- session: B
UPDATE t SET v = CONCAT(v, 'B') WHERE id = 1;
COMMIT;
-- session: A
UPDATE t SET v = 'A2' WHERE id = 2;
COMMIT;
-- session: B
UPDATE t SET v = CONCAT(v, 'B') WHERE id = 2;
COMMIT;
-- session: A
UPDATE t SET v = 'A3' WHERE id = 3;
COMMIT;
-- session: B
UPDATE t SET v = CONCAT(v, 'B') WHERE id = 3;
COMMIT;
-- session: A
UPDATE t SET v = 'A4' WHERE id = 4;
COMMIT;
-- session: B
UPDATE t SET v = CONCAT(v, 'B') WHERE id = 4;
COMMIT;
-- session: A
UPDATE t SET v = 'A5' WHERE id = 5;
COMMIT;
-- session: B
UPDATE t SET v = CONCAT(v, 'B') WHERE id = 5;
COMMIT;
-- session: A
UPDATE t SET v = 'A6' WHERE id = 6;
COMMIT;
-- session: B
UPDATE t SET v = CONCAT(v, 'B') WHERE id = 6;
COMMIT;
-- session: A
DELETE FROM t WHERE id = 1;
-- session: B
INSERT INTO t VALUES (7, 'B');
COMMIT;
ALTER SYSTEM SWITCH LOGFILE;
-- session: A
COMMIT;
