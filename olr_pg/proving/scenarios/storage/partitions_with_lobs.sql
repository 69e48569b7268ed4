-- purpose: a row with LOBs moves to another partition, so its LOBs are stored again
-- covers: partitions-hash, partition-moves
CREATE TABLE p (id NUMBER(6) PRIMARY KEY, region NUMBER(4), c CLOB) PARTITION BY HASH (region) PARTITIONS 3 ENABLE ROW MOVEMENT;
INSERT INTO p SELECT LEVEL, LEVEL, RPAD('c' || LEVEL, 500 * LEVEL, 'x') FROM dual CONNECT BY LEVEL <= 8;
COMMIT;
UPDATE p SET region = region + 1;
COMMIT;
UPDATE p SET c = c || 'y', region = 0 WHERE id > 5;
COMMIT;
