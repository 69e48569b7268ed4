-- purpose: the level of supplemental logging changes between two changes of a row
-- covers: logging-primary-key, logging-all, logging-dropped
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, a VARCHAR2(10), b NUMBER(4), SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS);
INSERT INTO l SELECT LEVEL, 'a', LEVEL FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
-- start
UPDATE l SET b = b + 1;
COMMIT;
ALTER TABLE l ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS;
UPDATE l SET b = b + 1;
DELETE FROM l WHERE id = 1;
COMMIT;
