-- purpose: supplemental logging of all columns of one table
-- covers: logging-all
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, a VARCHAR2(10), b NUMBER(4), c VARCHAR2(10), SUPPLEMENTAL LOG DATA (ALL) COLUMNS);
INSERT INTO l SELECT LEVEL, 'a', LEVEL, NULL FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
UPDATE l SET b = b + 1;
UPDATE l SET c = 'c' WHERE id = 2;
COMMIT;
DELETE FROM l WHERE id < 3;
COMMIT;
