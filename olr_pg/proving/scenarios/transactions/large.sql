-- purpose: one transaction of thousands of rows, over many undo blocks
-- covers: rolled-back
CREATE TABLE g (id NUMBER(8) PRIMARY KEY, v VARCHAR2(100), n NUMBER(8));
INSERT INTO g SELECT LEVEL, RPAD('row', 60, 'x'), LEVEL FROM dual CONNECT BY LEVEL <= 3000;
UPDATE g SET n = n + 1 WHERE MOD(id, 3) = 0;
DELETE FROM g WHERE MOD(id, 7) = 0;
COMMIT;
UPDATE g SET v = 'short';
ROLLBACK;
UPDATE g SET v = 'short' WHERE id > 2500;
COMMIT;
