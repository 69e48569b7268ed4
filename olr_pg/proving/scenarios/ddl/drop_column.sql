-- purpose: a column is dropped, and its values are removed from every row
-- others: readers with the old definition assign the later values to wrong columns
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
