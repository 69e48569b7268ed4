-- purpose: a partition is split in two and merged again: its rows are loaded into new segments
-- covers: partition-ddl
-- same: no, PostgreSQL writes partitions otherwise
CREATE TABLE p (id NUMBER(6) NOT NULL, v VARCHAR2(20)) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (100), PARTITION b VALUES LESS THAN (200));
INSERT INTO p SELECT LEVEL * 10, 'p' FROM dual CONNECT BY LEVEL <= 19;
COMMIT;
-- start
ALTER TABLE p SPLIT PARTITION a AT (50) INTO (PARTITION a1, PARTITION a2);
UPDATE p SET v = 'split' WHERE id BETWEEN 30 AND 70;
COMMIT;
ALTER TABLE p MERGE PARTITIONS a1, a2 INTO PARTITION a3;
UPDATE p SET v = 'merged' WHERE id < 30;
COMMIT;
