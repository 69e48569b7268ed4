-- purpose: supplemental log groups of chosen columns, with and without ALWAYS
-- covers: logging-groups
-- needs: logging-groups
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, a VARCHAR2(10), b NUMBER(4), c NUMBER(4), SUPPLEMENTAL LOG GROUP l_key (id) ALWAYS, SUPPLEMENTAL LOG GROUP l_ab (a, b));
INSERT INTO l SELECT LEVEL, 'a', LEVEL, LEVEL FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
-- start
UPDATE l SET c = 0;
UPDATE l SET b = 0 WHERE id < 3;
COMMIT;
DELETE FROM l WHERE id = 1;
COMMIT;
