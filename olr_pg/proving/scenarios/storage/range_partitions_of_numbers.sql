-- purpose: range partitions of a number, with negative numbers and values above the last bound
-- covers: partitions-range, fail-halfway
-- same: no, the table is not partitioned there
CREATE TABLE p (id NUMBER(6) PRIMARY KEY, n NUMBER(8,2)) PARTITION BY RANGE (n) (PARTITION below VALUES LESS THAN (-10), PARTITION middle VALUES LESS THAN (0.5), PARTITION above VALUES LESS THAN (1000));
INSERT INTO p SELECT LEVEL, LEVEL * 7 - 70 FROM dual CONNECT BY LEVEL <= 30;
COMMIT;
-- start
-- error: ORA-14400
INSERT INTO p VALUES (100, 1000);
UPDATE p SET n = n + 0.25 WHERE id > 15;
COMMIT;
-- error: ORA-14402
UPDATE p SET n = n + 100 WHERE id = 1;
DELETE FROM p WHERE n < 0;
COMMIT;
