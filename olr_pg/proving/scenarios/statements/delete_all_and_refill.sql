-- purpose: a table is emptied with DELETE and filled again in one transaction, as nightly jobs do
-- covers: multi-row
CREATE TABLE d (id NUMBER(6) PRIMARY KEY, v VARCHAR2(50));
INSERT INTO d SELECT LEVEL, 'old ' || LEVEL FROM dual CONNECT BY LEVEL <= 200;
COMMIT;
DELETE FROM d;
INSERT INTO d SELECT LEVEL, 'new ' || LEVEL FROM dual CONNECT BY LEVEL <= 150;
COMMIT;
DELETE FROM d;
ROLLBACK;
UPDATE d SET v = 'kept' WHERE id = 150;
COMMIT;
