-- purpose: a NOT NULL column with a default is added; older rows are stored without the value
-- others: decoders that use NULL for missing columns at the end of a row return NULL instead of the default
-- covers: add-column-default
CREATE TABLE a (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO a SELECT LEVEL, 'old' FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
ALTER TABLE a ADD (state VARCHAR2(10) DEFAULT 'fresh' NOT NULL);
UPDATE a SET v = 'touched' WHERE id = 1;
UPDATE a SET state = 'worn' WHERE id = 2;
INSERT INTO a (id) VALUES (20);
DELETE FROM a WHERE id = 3;
COMMIT;
