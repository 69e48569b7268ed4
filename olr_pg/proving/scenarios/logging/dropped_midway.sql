-- purpose: supplemental logging is dropped and added again, between changes of a row
-- others: tools that check the level only at their start decode the changes in between wrong
-- covers: logging-dropped
-- stops: L OLR-05009
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, a VARCHAR2(10), b NUMBER(4), SUPPLEMENTAL LOG DATA (ALL) COLUMNS);
INSERT INTO l SELECT LEVEL, 'a', LEVEL FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
-- start
UPDATE l SET b = b + 1 WHERE id = 1;
COMMIT;
ALTER TABLE l DROP SUPPLEMENTAL LOG DATA (ALL) COLUMNS;
UPDATE l SET b = b + 1 WHERE id = 1;
UPDATE l SET a = 'b' WHERE id = 2;
COMMIT;
ALTER TABLE l ADD SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS;
UPDATE l SET b = b + 1 WHERE id = 1;
COMMIT;
ALTER TABLE l DROP SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS;
ALTER TABLE l ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS;
UPDATE l SET b = b + 1 WHERE id = 1;
DELETE FROM l WHERE id = 2;
COMMIT;
