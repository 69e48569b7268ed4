-- purpose: tables that are not replicated are created, filled and dropped between changes of a replicated table
-- covers: drop-table
CREATE TABLE kept (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO kept VALUES (1, 'x');
COMMIT;
-- start
CREATE TABLE passing (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO passing VALUES (1, 'never');
UPDATE kept SET v = 'y';
COMMIT;
DROP TABLE passing;
INSERT INTO kept VALUES (2, 'z');
COMMIT;
CREATE TABLE passing (a VARCHAR2(5), b NUMBER(3));
INSERT INTO passing VALUES ('a', 1);
COMMIT;
