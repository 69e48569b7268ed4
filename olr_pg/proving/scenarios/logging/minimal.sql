-- purpose: only minimal supplemental logging: the redo of an update contains neither the key nor other old values
-- others: tools report no error and cannot find the row
-- covers: logging-minimal
-- stops: L OLR-05009
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, a VARCHAR2(10), b NUMBER(4), SUPPLEMENTAL LOG DATA (ALL) COLUMNS);
INSERT INTO l SELECT LEVEL, 'a', LEVEL FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
ALTER TABLE l DROP SUPPLEMENTAL LOG DATA (ALL) COLUMNS;
-- start
UPDATE l SET b = b + 1 WHERE id < 3;
COMMIT;
DELETE FROM l WHERE id = 5;
INSERT INTO l VALUES (6, 'f', 6);
COMMIT;
