-- purpose: partitions are added, and one is truncated, which the redo of rows does not show
-- others: rows of a truncated partition stay in the target, without an error
-- covers: partition-ddl
-- stops: P OLR-03073
-- same: no, PostgreSQL writes partitions otherwise
CREATE TABLE p (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20)) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (100), PARTITION b VALUES LESS THAN (200));
INSERT INTO p SELECT LEVEL * 10, 'v' FROM dual CONNECT BY LEVEL <= 19;
COMMIT;
-- start
ALTER TABLE p ADD PARTITION c VALUES LESS THAN (300);
INSERT INTO p VALUES (250, 'new');
UPDATE p SET v = 'w' WHERE id BETWEEN 80 AND 120;
COMMIT;
-- error: ORA-14400
INSERT INTO p VALUES (300, 'beyond');
ALTER TABLE p TRUNCATE PARTITION a UPDATE INDEXES;
INSERT INTO p VALUES (10, 'again');
UPDATE p SET v = 'x' WHERE id > 180;
COMMIT;
