-- purpose: changes of a temporary table, of which the redo contains only undo, and which are not replicated
-- covers: storage-other
-- needs: temporary
CREATE GLOBAL TEMPORARY TABLE g (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20)) ON COMMIT DELETE ROWS;
CREATE TABLE t (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20));
-- start
INSERT INTO g SELECT LEVEL, 'v' FROM dual CONNECT BY LEVEL <= 100;
INSERT INTO t SELECT id, v FROM g WHERE id < 10;
UPDATE g SET v = 'x';
COMMIT;
UPDATE t SET v = 'y';
COMMIT;
