-- purpose: a column is set unused: its values stay in the rows, between those of visible columns
-- others: readers that count only the visible columns assign the later values to wrong columns
-- covers: set-unused
CREATE TABLE u (id NUMBER(4) PRIMARY KEY, a VARCHAR2(10), b VARCHAR2(10), c NUMBER(4));
INSERT INTO u SELECT LEVEL, 'a' || LEVEL, 'b' || LEVEL, LEVEL FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
-- start
UPDATE u SET b = 'before' WHERE id = 1;
COMMIT;
ALTER TABLE u SET UNUSED (a);
UPDATE u SET b = 'after', c = 0 WHERE id < 3;
INSERT INTO u VALUES (9, 'new', 9);
COMMIT;
DELETE FROM u WHERE id = 2;
ALTER TABLE u ADD (a NUMBER(4));
UPDATE u SET a = 1 WHERE id > 3;
COMMIT;
