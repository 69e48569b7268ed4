-- purpose: a column is renamed between changes of its table
-- others: tools that query the source for names use the new name for older changes, or fail
-- covers: rename-column
CREATE TABLE r (id NUMBER(4) PRIMARY KEY, a VARCHAR2(10), b NUMBER(4));
INSERT INTO r SELECT LEVEL, 'a', LEVEL FROM dual CONNECT BY LEVEL <= 4;
COMMIT;
-- start
UPDATE r SET a = 'before' WHERE id = 1;
COMMIT;
ALTER TABLE r RENAME COLUMN a TO label;
UPDATE r SET label = 'after' WHERE id < 3;
INSERT INTO r (id, label) VALUES (9, 'new');
COMMIT;
-- error: ORA-00904
UPDATE r SET a = 'x';
DELETE FROM r WHERE id = 4;
COMMIT;
