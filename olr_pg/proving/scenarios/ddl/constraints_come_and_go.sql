-- purpose: keys and checks are added and dropped between changes
-- covers: ddl-other
CREATE TABLE c (id NUMBER(4) NOT NULL, a NUMBER(4), b VARCHAR2(10));
INSERT INTO c SELECT LEVEL, LEVEL, 'x' FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
-- start
ALTER TABLE c ADD CONSTRAINT c_u UNIQUE (a);
-- error: ORA-00001
INSERT INTO c VALUES (6, 1, 'x');
INSERT INTO c VALUES (6, 6, 'x');
COMMIT;
ALTER TABLE c DROP CONSTRAINT c_u;
ALTER TABLE c ADD CONSTRAINT c_c CHECK (a < 100);
INSERT INTO c VALUES (7, 1, 'y');
-- error: ORA-02290
UPDATE c SET a = 100;
COMMIT;
