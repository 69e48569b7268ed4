-- purpose: a table with an encrypted column
-- covers: encryption
-- needs: encryption
CREATE TABLE e (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20) ENCRYPT, w VARCHAR2(20));
-- start
INSERT INTO e VALUES (1, 'secret', 'open');
COMMIT;
UPDATE e SET w = 'changed';
COMMIT;
UPDATE e SET v = 'changed';
COMMIT;
