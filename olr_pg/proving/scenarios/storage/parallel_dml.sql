-- purpose: several parallel servers execute one statement, each with its own transaction
-- others: tools that deliver the transaction of each server separately split the statement
-- covers: direct-path
-- needs: parallel-dml
-- same: no, it has hints of Oracle
CREATE TABLE p (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO p SELECT LEVEL, 'v' FROM dual CONNECT BY LEVEL <= 5000;
COMMIT;
-- start
ALTER SESSION FORCE PARALLEL DML PARALLEL 2;
UPDATE /*+ PARALLEL(p 2) */ p SET v = 'changed' WHERE MOD(id, 2) = 0;
COMMIT;
INSERT /*+ APPEND PARALLEL(p 2) */ INTO p SELECT id + 10000, v FROM p;
COMMIT;
