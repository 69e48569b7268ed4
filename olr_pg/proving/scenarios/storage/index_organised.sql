-- purpose: rows in the index of the primary key: no ROWID, deleted entries that are reused
-- covers: iot
CREATE TABLE i (id NUMBER(6), no NUMBER(4), v VARCHAR2(50), w NUMBER(6), CONSTRAINT i_pk PRIMARY KEY (id, no)) ORGANIZATION INDEX;
INSERT INTO i SELECT MOD(LEVEL, 5), LEVEL, 'v' || LEVEL, NULL FROM dual CONNECT BY LEVEL <= 30;
COMMIT;
UPDATE i SET v = UPPER(v), w = no WHERE id = 2;
UPDATE i SET v = NULL WHERE id = 3;
COMMIT;
DELETE FROM i WHERE no < 6;
COMMIT;
INSERT INTO i VALUES (1, 1, 'again', 1);
UPDATE i SET no = no + 100 WHERE id = 4;
COMMIT;
UPDATE i SET w = 1;
ROLLBACK;
DELETE FROM i WHERE id = 0;
COMMIT;
