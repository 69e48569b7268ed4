-- purpose: a transaction of one thread stays open while the other thread switches logs
-- covers: redo-threads, over-many-logs
-- needs: rac
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO t SELECT LEVEL, 'start' FROM dual CONNECT BY LEVEL <= 6;
COMMIT;
-- start
UPDATE t SET v = 'A' WHERE id < 3;
-- session: B
UPDATE t SET v = 'B' WHERE id = 3;
COMMIT;
ALTER SYSTEM SWITCH LOGFILE;
UPDATE t SET v = 'B' WHERE id = 4;
COMMIT;
ALTER SYSTEM SWITCH LOGFILE;
-- session: A
DELETE FROM t WHERE id = 6;
COMMIT;
-- session: B
UPDATE t SET v = v || '!';
COMMIT;
