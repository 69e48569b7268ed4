-- purpose: a statement that fails at its last row undoes its first rows; the redo contains this undo
-- covers: fail-halfway
-- same: no, PostgreSQL ends the transaction with an error
CREATE TABLE f (id NUMBER(4) PRIMARY KEY, v NUMBER(4) CHECK (v < 100));
INSERT INTO f SELECT LEVEL, LEVEL FROM dual CONNECT BY LEVEL <= 20;
COMMIT;
INSERT INTO f VALUES (50, 50);
-- error: ORA-02290
UPDATE f SET v = v * 6;
-- error: ORA-00001
INSERT INTO f SELECT 40 + LEVEL, 1 FROM dual CONNECT BY LEVEL <= 10;
-- error: ORA-01438
INSERT INTO f SELECT 9990 + LEVEL, 1 FROM dual CONNECT BY LEVEL <= 10;
UPDATE f SET v = v + 1 WHERE id = 50;
COMMIT;
