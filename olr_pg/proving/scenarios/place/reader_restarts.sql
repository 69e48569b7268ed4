-- purpose: the reader is stopped while transactions are open, and continues with them
-- others: tools that restart at the last commit lose transactions that were open before it
-- covers: reader-restarts
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO t SELECT LEVEL, 'start' FROM dual CONNECT BY LEVEL <= 6;
COMMIT;
-- start
UPDATE t SET v = 'A' WHERE id = 1;
-- session: B
UPDATE t SET v = 'B' WHERE id = 2;
COMMIT;
ALTER SYSTEM SWITCH LOGFILE;
-- restart
-- session: A
UPDATE t SET v = 'A' WHERE id = 3;
ALTER SYSTEM SWITCH LOGFILE;
-- restart
COMMIT;
-- session: B
DELETE FROM t WHERE id = 6;
ALTER SYSTEM SWITCH LOGFILE;
-- restart
COMMIT;
