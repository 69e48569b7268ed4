-- purpose: TRUNCATE removes all rows without a change of a row, and creates new segments
-- covers: truncate
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
CREATE TABLE other (id NUMBER(4) PRIMARY KEY);
INSERT INTO t SELECT LEVEL, 'gone' FROM dual CONNECT BY LEVEL <= 20;
INSERT INTO other VALUES (1);
COMMIT;
TRUNCATE TABLE t;
INSERT INTO t VALUES (1, 'after');
UPDATE other SET id = 2;
COMMIT;
UPDATE t SET v = 'changed';
COMMIT;
