-- purpose: a partition is dropped with its rows
-- covers: partition-ddl
-- same: no, PostgreSQL writes partitions otherwise
CREATE TABLE p (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20)) PARTITION BY LIST (v) (PARTITION a VALUES ('a'), PARTITION b VALUES ('b'), PARTITION c VALUES (DEFAULT));
INSERT INTO p SELECT LEVEL, SUBSTR('abc', MOD(LEVEL, 3) + 1, 1) FROM dual CONNECT BY LEVEL <= 12;
COMMIT;
-- start
DELETE FROM p WHERE id = 1;
COMMIT;
ALTER TABLE p DROP PARTITION b UPDATE INDEXES;
INSERT INTO p VALUES (100, 'b');
DELETE FROM p WHERE v = 'a' AND id < 6;
COMMIT;
