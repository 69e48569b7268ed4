-- purpose: statements that change many rows become redo records of many rows, in one block and in several
-- covers: multi-row
CREATE TABLE m (id NUMBER(6) PRIMARY KEY, v VARCHAR2(200), n NUMBER(6));
INSERT INTO m SELECT LEVEL, RPAD('v' || LEVEL, 150, '.'), MOD(LEVEL, 5) FROM dual CONNECT BY LEVEL <= 300;
COMMIT;
INSERT INTO m SELECT id + 1000, v, n FROM m WHERE n = 3;
COMMIT;
UPDATE m SET v = UPPER(v) WHERE n IN (1, 2);
COMMIT;
DELETE FROM m WHERE n BETWEEN 2 AND 3;
COMMIT;
