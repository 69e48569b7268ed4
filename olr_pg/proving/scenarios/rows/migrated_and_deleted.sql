-- purpose: rows that have moved to another block are changed and deleted, and their keys are used again
-- others: the deletion of only the moved piece, or of only its address, is delivered twice or not at all
-- covers: migrated
-- same: no, it looks at ROWIDs
CREATE TABLE m (id NUMBER(4) PRIMARY KEY, v VARCHAR2(3000), n NUMBER(4));
INSERT INTO m SELECT LEVEL, 'small', LEVEL FROM dual CONNECT BY LEVEL <= 30;
COMMIT;
UPDATE m SET v = RPAD('large', 2000, 'x') WHERE id < 15;
COMMIT;
UPDATE m SET n = n + 1 WHERE id < 10;
UPDATE m SET v = RPAD('larger', 2900, 'y') WHERE id < 5;
COMMIT;
DELETE FROM m WHERE id < 8;
COMMIT;
INSERT INTO m SELECT LEVEL, 'again', 0 FROM dual CONNECT BY LEVEL <= 7;
COMMIT;
DELETE FROM m WHERE id BETWEEN 8 AND 12;
ROLLBACK;
UPDATE m SET n = 0 WHERE id BETWEEN 8 AND 12;
COMMIT;
