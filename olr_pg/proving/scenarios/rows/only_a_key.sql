-- purpose: tables of one column, which is the key
-- others: appliers that build an UPDATE without SET fail
-- covers: column-borders
CREATE TABLE t (id NUMBER(6) PRIMARY KEY);
INSERT INTO t SELECT LEVEL FROM dual CONNECT BY LEVEL <= 20;
COMMIT;
UPDATE t SET id = id + 100 WHERE id > 15;
UPDATE t SET id = id WHERE id < 5;
COMMIT;
DELETE FROM t WHERE MOD(id, 2) = 0;
COMMIT;
