-- purpose: supplemental logging of only the primary key: the redo lacks the old values of other columns
-- covers: logging-primary-key
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, a VARCHAR2(10), b NUMBER(4), SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS);
INSERT INTO l SELECT LEVEL, 'a', LEVEL FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
UPDATE l SET b = b + 1;
UPDATE l SET id = id + 10 WHERE id = 4;
COMMIT;
DELETE FROM l WHERE b = 2;
COMMIT;
