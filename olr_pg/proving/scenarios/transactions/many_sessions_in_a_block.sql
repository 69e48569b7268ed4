-- purpose: eight sessions have open transactions in one block, more than it has transaction slots at first
-- covers: interleaved
CREATE TABLE b (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO b SELECT LEVEL, 'start' FROM dual CONNECT BY LEVEL <= 16;
COMMIT;
-- start
-- session: S1
UPDATE b SET v = 'first' WHERE id = 1;
-- session: S2
UPDATE b SET v = 'first' WHERE id = 2;
-- session: S3
UPDATE b SET v = 'first' WHERE id = 3;
-- session: S4
UPDATE b SET v = 'first' WHERE id = 4;
-- session: S5
UPDATE b SET v = 'first' WHERE id = 5;
-- session: S6
UPDATE b SET v = 'first' WHERE id = 6;
-- session: S7
UPDATE b SET v = 'first' WHERE id = 7;
-- session: S8
UPDATE b SET v = 'first' WHERE id = 8;
-- session: S1
DELETE FROM b WHERE id = 1 + 8;
-- session: S2
DELETE FROM b WHERE id = 2 + 8;
-- session: S3
DELETE FROM b WHERE id = 3 + 8;
-- session: S4
DELETE FROM b WHERE id = 4 + 8;
-- session: S5
DELETE FROM b WHERE id = 5 + 8;
-- session: S6
DELETE FROM b WHERE id = 6 + 8;
-- session: S7
DELETE FROM b WHERE id = 7 + 8;
-- session: S8
DELETE FROM b WHERE id = 8 + 8;
-- session: S3
ROLLBACK;
-- session: S5
COMMIT;
-- session: S1
COMMIT;
-- session: S8
ROLLBACK;
-- session: S2
COMMIT;
-- session: S4
COMMIT;
-- session: S7
COMMIT;
-- session: S6
COMMIT;
