-- purpose: changes of an index-organised table are rolled back to savepoints
-- covers: iot, rolled-back
CREATE TABLE i (id NUMBER(6) PRIMARY KEY, v VARCHAR2(200)) ORGANIZATION INDEX;
INSERT INTO i SELECT LEVEL, RPAD('v', 100, 'x') FROM dual CONNECT BY LEVEL <= 100;
COMMIT;
DELETE FROM i WHERE MOD(id, 2) = 0;
SAVEPOINT one;
INSERT INTO i VALUES (2, 'gone');
UPDATE i SET v = 'gone' WHERE id = 1;
ROLLBACK TO one;
INSERT INTO i VALUES (4, 'kept');
COMMIT;
DELETE FROM i;
ROLLBACK;
UPDATE i SET v = RPAD('v', 180, 'y') WHERE id < 50;
COMMIT;
