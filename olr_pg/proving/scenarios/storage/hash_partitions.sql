-- purpose: rows of a hash-partitioned table, and rows that an update moves to another partition
-- covers: partitions-hash, partition-moves
CREATE TABLE p (id NUMBER(6) PRIMARY KEY, region NUMBER(4), v VARCHAR2(20)) PARTITION BY HASH (region) PARTITIONS 4 ENABLE ROW MOVEMENT;
INSERT INTO p SELECT LEVEL, MOD(LEVEL, 9), 'v' || LEVEL FROM dual CONNECT BY LEVEL <= 40;
COMMIT;
UPDATE p SET v = UPPER(v) WHERE region < 3;
COMMIT;
UPDATE p SET region = region + 1 WHERE id < 20;
COMMIT;
DELETE FROM p WHERE region = 5;
UPDATE p SET region = 0;
ROLLBACK;
UPDATE p SET region = 0 WHERE id > 30;
COMMIT;
