-- purpose: one transaction of 300,000 rows, over many logs, with more undo than fits into memory
-- others: tools that keep a transaction in memory fail
-- covers: 300000-rows, over-many-logs
-- large
CREATE TABLE g (id NUMBER(8) PRIMARY KEY, v VARCHAR2(100), n NUMBER(8));
INSERT INTO g SELECT LEVEL, RPAD('row', 60, 'x'), LEVEL FROM dual CONNECT BY LEVEL <= 300000;
COMMIT;
UPDATE g SET n = n + 1 WHERE MOD(id, 3) = 0;
ALTER SYSTEM SWITCH LOGFILE;
DELETE FROM g WHERE MOD(id, 7) = 0;
COMMIT;
UPDATE g SET v = 'short';
ROLLBACK;
UPDATE g SET v = 'short' WHERE id > 299000;
COMMIT;
