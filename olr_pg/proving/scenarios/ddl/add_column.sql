-- purpose: a column is added; older rows have NULL in it, and are stored without it
-- covers: add-column
CREATE TABLE a (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO a SELECT LEVEL, 'old' FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
ALTER TABLE a ADD (extra VARCHAR2(10));
INSERT INTO a VALUES (10, 'new', 'given');
UPDATE a SET extra = 'set' WHERE id < 3;
COMMIT;
ALTER TABLE a ADD (n NUMBER(4), d DATE);
UPDATE a SET n = id, v = 'again' WHERE id > 2;
COMMIT;
DELETE FROM a WHERE id IN (1, 10);
COMMIT;
