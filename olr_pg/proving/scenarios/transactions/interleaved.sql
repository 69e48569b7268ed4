-- purpose: three sessions change rows of the same blocks alternately; each commits separately
-- covers: interleaved
CREATE TABLE i (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO i SELECT LEVEL, 'start' FROM dual CONNECT BY LEVEL <= 9;
COMMIT;
-- start
UPDATE i SET v = 'A1' WHERE id = 1;
-- session: B
UPDATE i SET v = 'B2' WHERE id = 2;
-- session: C
DELETE FROM i WHERE id = 3;
-- session: A
UPDATE i SET v = 'A4' WHERE id = 4;
-- session: B
COMMIT;
INSERT INTO i VALUES (12, 'B12');
-- session: C
UPDATE i SET v = 'C5' WHERE id = 5;
ROLLBACK;
-- session: A
DELETE FROM i WHERE id = 6;
COMMIT;
-- session: C
INSERT INTO i VALUES (13, 'C13');
COMMIT;
-- session: B
UPDATE i SET v = 'B7' WHERE id = 7;
COMMIT;
