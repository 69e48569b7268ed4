-- purpose: several LOBs of several rows and tables in one transaction, one of them twice
-- covers: several-in-one-transaction
CREATE TABLE l1 (id NUMBER(4) PRIMARY KEY, a CLOB, b CLOB);
CREATE TABLE l2 (id NUMBER(4) PRIMARY KEY, v BLOB);
INSERT INTO l1 SELECT LEVEL, RPAD('a' || LEVEL, 3000, 'x'), RPAD('b' || LEVEL, 4000, 'y') FROM dual CONNECT BY LEVEL <= 5;
INSERT INTO l2 SELECT LEVEL, UTL_RAW.CAST_TO_RAW(RPAD('r' || LEVEL, 1900, 'z')) FROM dual CONNECT BY LEVEL <= 5;
UPDATE l1 SET b = a || b WHERE id < 3;
UPDATE l1 SET b = b || '!' WHERE id = 1;
UPDATE l2 SET v = NULL WHERE id = 2;
DELETE FROM l1 WHERE id = 5;
COMMIT;
