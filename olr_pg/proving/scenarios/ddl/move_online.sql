-- purpose: MOVE ONLINE, during which other sessions change rows, in a table with a key and in one without
-- others: it is not known whether tools read the copies of the rows as new rows
-- covers: move
-- needs: online-ddl
CREATE TABLE k (id NUMBER(4) PRIMARY KEY, v VARCHAR2(100));
CREATE TABLE n (id NUMBER(4), v VARCHAR2(100));
INSERT INTO k SELECT LEVEL, RPAD('v' || LEVEL, 80, '.') FROM dual CONNECT BY LEVEL <= 200;
INSERT INTO n SELECT LEVEL, RPAD('v' || LEVEL, 80, '.') FROM dual CONNECT BY LEVEL <= 200;
COMMIT;
-- start
DELETE FROM k WHERE MOD(id, 3) = 0;
DELETE FROM n WHERE MOD(id, 3) = 0;
COMMIT;
ALTER TABLE k MOVE ONLINE;
ALTER TABLE n MOVE ONLINE;
UPDATE k SET v = 'after' WHERE id < 20;
UPDATE n SET v = 'after' WHERE id < 20;
DELETE FROM k WHERE id > 190;
DELETE FROM n WHERE id > 190;
INSERT INTO k VALUES (500, 'new');
INSERT INTO n VALUES (500, 'new');
COMMIT;
