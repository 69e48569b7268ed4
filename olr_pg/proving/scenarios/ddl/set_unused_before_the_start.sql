-- purpose: a column was set unused before the replication begins
-- covers: set-unused
CREATE TABLE u (id NUMBER(4) PRIMARY KEY, a VARCHAR2(10), b VARCHAR2(10), c NUMBER(4));
INSERT INTO u SELECT LEVEL, 'a' || LEVEL, 'b' || LEVEL, LEVEL FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
ALTER TABLE u SET UNUSED COLUMN a;
-- start
UPDATE u SET b = 'changed', c = 0 WHERE id < 3;
INSERT INTO u VALUES (9, 'new', 9);
COMMIT;
DELETE FROM u WHERE id IN (2, 9);
COMMIT;
