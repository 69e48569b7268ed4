-- purpose: a transaction in which every statement failed commits nothing
-- covers: fail-halfway
-- same: no, PostgreSQL ends the transaction with an error
CREATE TABLE f (id NUMBER(4) PRIMARY KEY);
INSERT INTO f VALUES (1);
COMMIT;
-- error: ORA-00001
INSERT INTO f VALUES (1);
-- error: ORA-00001
INSERT INTO f SELECT 3 - LEVEL FROM dual CONNECT BY LEVEL <= 2;
COMMIT;
INSERT INTO f VALUES (2);
COMMIT;
