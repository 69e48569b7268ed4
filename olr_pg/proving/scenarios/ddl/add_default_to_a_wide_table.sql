-- purpose: columns with defaults of several types are added, one after the other
-- covers: add-column-default
CREATE TABLE a (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO a SELECT LEVEL, 'old' FROM dual CONNECT BY LEVEL <= 4;
COMMIT;
-- start
ALTER TABLE a ADD (n NUMBER(8,2) DEFAULT -1.5 NOT NULL);
UPDATE a SET v = 'touched' WHERE id = 1;
COMMIT;
ALTER TABLE a ADD (d DATE DEFAULT DATE '2024-02-29' NOT NULL, w VARCHAR2(20) DEFAULT 'it''s new' NOT NULL);
UPDATE a SET n = 7 WHERE id = 2;
INSERT INTO a (id) VALUES (9);
COMMIT;
DELETE FROM a WHERE id IN (3, 9);
COMMIT;
