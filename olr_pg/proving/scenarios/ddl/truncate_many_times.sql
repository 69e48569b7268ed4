-- purpose: a table is filled and truncated repeatedly, like a staging table
-- others: the data object number changes each time; tools that keep the first one lose all later rows
-- covers: truncate
CREATE TABLE s (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO s VALUES (1, 'first');
COMMIT;
-- start
TRUNCATE TABLE s;
INSERT INTO s SELECT LEVEL, 'round 1' FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
UPDATE s SET v = 'x' WHERE id = 1;
COMMIT;
TRUNCATE TABLE s;
INSERT INTO s SELECT LEVEL, 'round 2' FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
UPDATE s SET v = 'x' WHERE id = 2;
COMMIT;
TRUNCATE TABLE s;
INSERT INTO s SELECT LEVEL, 'round 3' FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
UPDATE s SET v = 'x' WHERE id = 3;
COMMIT;
TRUNCATE TABLE s;
INSERT INTO s SELECT LEVEL, 'round 4' FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
UPDATE s SET v = 'x' WHERE id = 4;
COMMIT;
