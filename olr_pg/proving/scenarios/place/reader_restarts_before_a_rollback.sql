-- purpose: the reader is stopped between a savepoint and the rollback to it, with LOBs and DDL before and after
-- covers: reader-restarts, rolled-back
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20), c CLOB);
CREATE TABLE u (id NUMBER(4) PRIMARY KEY);
INSERT INTO t SELECT LEVEL, 'start', 'c' FROM dual CONNECT BY LEVEL <= 6;
COMMIT;
-- start
UPDATE t SET c = RPAD('kept', 4000, 'x') WHERE id = 1;
SAVEPOINT one;
UPDATE t SET v = 'gone', c = RPAD('gone', 4000, 'x') WHERE id = 2;
ALTER SYSTEM SWITCH LOGFILE;
-- restart
-- session: B
ALTER TABLE u ADD (v NUMBER(4));
INSERT INTO u VALUES (1, 1);
COMMIT;
-- session: A
ROLLBACK TO one;
UPDATE t SET v = 'kept' WHERE id = 3;
ALTER SYSTEM SWITCH LOGFILE;
-- restart
COMMIT;
