-- purpose: two tables in a cluster: their rows are in the same blocks
-- others: only the table number in the block shows the table of a row; tools without it mix the tables
-- covers: clusters
-- needs: clusters
CREATE CLUSTER staff (dept NUMBER(4)) SIZE 512;
CREATE INDEX staff_i ON CLUSTER staff;
CREATE TABLE dept (dept NUMBER(4) PRIMARY KEY, name VARCHAR2(20)) CLUSTER staff (dept);
CREATE TABLE emp (id NUMBER(4) PRIMARY KEY, dept NUMBER(4), name VARCHAR2(20)) CLUSTER staff (dept);
-- start
INSERT INTO dept SELECT LEVEL, 'd' || LEVEL FROM dual CONNECT BY LEVEL <= 3;
INSERT INTO emp SELECT LEVEL, MOD(LEVEL, 3) + 1, 'e' || LEVEL FROM dual CONNECT BY LEVEL <= 9;
COMMIT;
UPDATE emp SET dept = 1 WHERE id = 1;
DELETE FROM dept WHERE dept = 3;
COMMIT;
