-- purpose: rows are stored only up to their last value; updates make them longer and shorter
-- covers: trailing-nulls
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, c1 NUMBER(4), c2 NUMBER(4), c3 NUMBER(4), c4 NUMBER(4), c5 NUMBER(4));
INSERT INTO t (id) SELECT LEVEL FROM dual CONNECT BY LEVEL <= 6;
COMMIT;
UPDATE t SET c1 = 1 WHERE id = 1;
UPDATE t SET c5 = 5 WHERE id = 2;
UPDATE t SET c3 = 3, c5 = 5 WHERE id = 3;
COMMIT;
UPDATE t SET c5 = NULL;
COMMIT;
UPDATE t SET c3 = NULL, c4 = 4 WHERE id = 3;
COMMIT;
DELETE FROM t WHERE id < 4;
COMMIT;
