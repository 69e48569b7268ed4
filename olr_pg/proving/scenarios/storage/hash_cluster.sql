-- purpose: a table in a hash cluster
-- covers: clusters
-- needs: clusters
CREATE CLUSTER h (id NUMBER(6)) SIZE 256 SINGLE TABLE HASHKEYS 100;
CREATE TABLE t (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20)) CLUSTER h (id);
-- start
INSERT INTO t SELECT LEVEL, 'v' || LEVEL FROM dual CONNECT BY LEVEL <= 50;
COMMIT;
UPDATE t SET v = 'changed' WHERE id < 10;
DELETE FROM t WHERE id > 40;
COMMIT;
