-- purpose: supplemental logging of unique and foreign key columns, which are logged only if one of them changes
-- covers: logging-unique, logging-foreign-key
-- needs: logging-groups
CREATE TABLE p (id NUMBER(4) PRIMARY KEY);
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, u1 NUMBER(4), u2 NUMBER(4), p NUMBER(4) REFERENCES p, v VARCHAR2(10), UNIQUE (u1, u2), SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS, SUPPLEMENTAL LOG DATA (UNIQUE) COLUMNS, SUPPLEMENTAL LOG DATA (FOREIGN KEY) COLUMNS);
INSERT INTO p SELECT LEVEL FROM dual CONNECT BY LEVEL <= 3;
INSERT INTO l SELECT LEVEL, LEVEL, LEVEL, 1, 'v' FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
-- start
UPDATE l SET v = 'x';
UPDATE l SET u1 = u1 + 10 WHERE id < 3;
UPDATE l SET p = 2 WHERE id > 3;
COMMIT;
DELETE FROM l WHERE id = 1;
COMMIT;
