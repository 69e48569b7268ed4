-- purpose: subpartitions: range partitions with hash subpartitions
-- covers: partitions-range, partitions-hash
-- needs: subpartitions
CREATE TABLE p (id NUMBER(6) PRIMARY KEY, day DATE, v VARCHAR2(20)) PARTITION BY RANGE (day) SUBPARTITION BY HASH (id) SUBPARTITIONS 2 (PARTITION a VALUES LESS THAN (DATE '2024-01-01'), PARTITION b VALUES LESS THAN (MAXVALUE)) ENABLE ROW MOVEMENT;
INSERT INTO p SELECT LEVEL, DATE '2023-12-20' + LEVEL, 'v' FROM dual CONNECT BY LEVEL <= 30;
COMMIT;
UPDATE p SET day = day + 5 WHERE id < 15;
COMMIT;
DELETE FROM p WHERE day > DATE '2024-01-10';
COMMIT;
