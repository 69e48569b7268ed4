-- purpose: a partition and a table exchange their rows: only the numbers of their segments change
-- others: the redo of rows does not show it; tools apply later changes to rows that the target does not have
-- covers: exchange
-- stops: P OLR-03073 X OLR-03073
-- same: no, PostgreSQL has no EXCHANGE
CREATE TABLE p (id NUMBER(6) NOT NULL, v VARCHAR2(20)) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (100), PARTITION b VALUES LESS THAN (200));
CREATE TABLE x (id NUMBER(6) NOT NULL, v VARCHAR2(20));
INSERT INTO p SELECT LEVEL * 10, 'p' FROM dual CONNECT BY LEVEL <= 19;
INSERT INTO x SELECT LEVEL * 5, 'x' FROM dual CONNECT BY LEVEL <= 10;
COMMIT;
-- start
UPDATE p SET v = 'before' WHERE id = 10;
COMMIT;
ALTER TABLE p EXCHANGE PARTITION a WITH TABLE x;
UPDATE p SET v = 'after' WHERE id < 20;
UPDATE x SET v = 'after' WHERE id < 20;
COMMIT;
