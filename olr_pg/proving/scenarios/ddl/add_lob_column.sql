-- purpose: a LOB column is added to a table with rows
-- covers: add-column, lob-out-of-row
CREATE TABLE a (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO a SELECT LEVEL, 'old' FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
ALTER TABLE a ADD (doc CLOB);
UPDATE a SET doc = 'small' WHERE id = 1;
UPDATE a SET doc = RPAD('large', 4000, 'x') WHERE id = 2;
INSERT INTO a VALUES (10, 'new', RPAD('new', 3000, 'y'));
COMMIT;
UPDATE a SET v = 'touched';
COMMIT;
