-- purpose: keys of an index-organised table change, past other rows, and are used again
-- others: an index has no update of a key, only a deletion and an insertion, often in two blocks
-- covers: iot
CREATE TABLE i (id NUMBER(6) PRIMARY KEY, v VARCHAR2(50), n NUMBER(6)) ORGANIZATION INDEX;
INSERT INTO i SELECT LEVEL * 10, 'v' || LEVEL, LEVEL FROM dual CONNECT BY LEVEL <= 30;
COMMIT;
UPDATE i SET id = id + 5;
COMMIT;
UPDATE i SET id = 1000 - id WHERE n < 10;
COMMIT;
DELETE FROM i WHERE n > 20;
INSERT INTO i SELECT LEVEL, 'again', LEVEL FROM dual CONNECT BY LEVEL <= 9;
COMMIT;
UPDATE i SET id = id + 1 WHERE id < 10;
ROLLBACK;
UPDATE i SET v = NULL, n = NULL WHERE id < 5;
COMMIT;
