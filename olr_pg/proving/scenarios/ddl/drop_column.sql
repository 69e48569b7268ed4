-- purpose: a column is dropped, and its values are taken out of every row
-- others: readers with the old definition shift the columns behind it
-- covers: drop-column
-- needs: drop-column
-- stops: D OLR-03072
CREATE TABLE d (id NUMBER(4) PRIMARY KEY, a VARCHAR2(10), b VARCHAR2(10));
INSERT INTO d SELECT LEVEL, 'a', 'b' FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
-- start
UPDATE d SET b = 'before';
COMMIT;
ALTER TABLE d DROP COLUMN a;
UPDATE d SET b = 'after' WHERE id < 3;
COMMIT;
