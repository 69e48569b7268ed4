-- purpose: primary key logging for a table without a primary key: Oracle logs all columns instead
-- covers: logging-primary-key
CREATE TABLE l (a NUMBER(4), b VARCHAR2(10), c NUMBER(4), SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS);
INSERT INTO l SELECT LEVEL, 'b', NULL FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
UPDATE l SET b = 'c' WHERE a < 3;
DELETE FROM l WHERE a = 5;
COMMIT;
