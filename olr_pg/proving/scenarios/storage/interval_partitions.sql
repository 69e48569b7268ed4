-- purpose: an INSERT creates the partition for its row
-- others: tools lose rows of partitions that their dictionary does not contain
-- covers: partitions-range
-- needs: interval-partitions
CREATE TABLE p (id NUMBER(6) PRIMARY KEY, day DATE, v VARCHAR2(20)) PARTITION BY RANGE (day) INTERVAL (NUMTODSINTERVAL(1, 'DAY')) (PARTITION p0 VALUES LESS THAN (DATE '2024-01-01'));
INSERT INTO p VALUES (1, DATE '2023-12-31', 'first');
COMMIT;
-- start
INSERT INTO p SELECT 10 + LEVEL, DATE '2024-01-01' + LEVEL, 'v' FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
UPDATE p SET v = 'changed' WHERE id > 12;
INSERT INTO p VALUES (20, DATE '2025-01-01', 'gone');
ROLLBACK;
DELETE FROM p WHERE id = 11;
COMMIT;
