-- purpose: a table is created from a query while another table is replicated
-- covers: direct-path
CREATE TABLE src (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO src SELECT LEVEL, 'v' || LEVEL FROM dual CONNECT BY LEVEL <= 50;
COMMIT;
-- start
CREATE TABLE copy AS SELECT id, v FROM src;
UPDATE src SET v = 'changed' WHERE id < 10;
COMMIT;
DROP TABLE copy;
DELETE FROM src WHERE id > 40;
COMMIT;
