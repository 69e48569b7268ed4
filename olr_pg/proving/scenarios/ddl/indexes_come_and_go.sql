-- purpose: indexes are created and dropped while the table changes
-- covers: ddl-other
CREATE TABLE x (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO x SELECT LEVEL, 'v' || LEVEL FROM dual CONNECT BY LEVEL <= 10;
COMMIT;
-- start
CREATE INDEX x_v ON x (v);
UPDATE x SET v = 'indexed' WHERE id < 5;
COMMIT;
DROP INDEX x_v;
DELETE FROM x WHERE v = 'indexed';
COMMIT;
