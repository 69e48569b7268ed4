-- purpose: rows of a key and one value, hundreds in a block
-- covers: column-borders
CREATE TABLE t (id NUMBER(6) PRIMARY KEY, v NUMBER(2));
INSERT INTO t SELECT LEVEL, MOD(LEVEL, 100) FROM dual CONNECT BY LEVEL <= 1500;
COMMIT;
UPDATE t SET v = NULL WHERE v < 3;
COMMIT;
DELETE FROM t WHERE v BETWEEN 40 AND 60;
COMMIT;
