-- purpose: rows swap the values of a second unique key in one transaction
-- others: appliers that check only the primary key violate the other key
-- covers: key-swaps
CREATE TABLE k (id NUMBER(4) PRIMARY KEY, mail VARCHAR2(20) NOT NULL, UNIQUE (mail));
INSERT INTO k SELECT LEVEL, 'm' || LEVEL FROM dual CONNECT BY LEVEL <= 4;
COMMIT;
UPDATE k SET mail = 'tmp' WHERE id = 1;
UPDATE k SET mail = 'm1' WHERE id = 2;
UPDATE k SET mail = 'm2' WHERE id = 1;
COMMIT;
DELETE FROM k WHERE id = 3;
UPDATE k SET mail = 'm3' WHERE id = 4;
INSERT INTO k VALUES (3, 'm4');
COMMIT;
