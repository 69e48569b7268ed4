-- purpose: rows move between range partitions, with their keys, within savepoints and across them
-- covers: partitions-range, partition-moves
CREATE TABLE p (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20)) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (100), PARTITION b VALUES LESS THAN (200), PARTITION c VALUES LESS THAN (MAXVALUE)) ENABLE ROW MOVEMENT;
INSERT INTO p SELECT LEVEL * 10, 'v' || LEVEL FROM dual CONNECT BY LEVEL <= 25;
COMMIT;
-- start
UPDATE p SET id = id + 95 WHERE id < 50;
SAVEPOINT one;
UPDATE p SET id = id + 500;
ROLLBACK TO one;
UPDATE p SET id = id + 1;
COMMIT;
UPDATE p SET id = 300 - id WHERE id BETWEEN 100 AND 130;
COMMIT;
