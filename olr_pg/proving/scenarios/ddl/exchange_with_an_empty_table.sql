-- purpose: a partition is emptied by an exchange with an empty table, as in archiving
-- covers: exchange
-- stops: P OLR-03073 X OLR-03073
-- same: no, PostgreSQL has no EXCHANGE
CREATE TABLE p (id NUMBER(6) NOT NULL, v VARCHAR2(20)) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (100), PARTITION b VALUES LESS THAN (200));
CREATE TABLE x (id NUMBER(6) NOT NULL, v VARCHAR2(20));
INSERT INTO p SELECT LEVEL * 10, 'p' FROM dual CONNECT BY LEVEL <= 19;
COMMIT;
-- start
ALTER TABLE p EXCHANGE PARTITION a WITH TABLE x WITHOUT VALIDATION;
INSERT INTO p VALUES (10, 'new');
COMMIT;
