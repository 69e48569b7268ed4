-- purpose: CHAR of 2,000 bytes, full and nearly empty
-- covers: padding
CREATE TABLE c (id NUMBER(4) PRIMARY KEY, v CHAR(2000), w CHAR(255));
INSERT INTO c VALUES (1, RPAD('x', 2000, 'y'), 'short');
INSERT INTO c VALUES (2, 'x', RPAD('w', 255, 'w'));
INSERT INTO c VALUES (3, ' ', ' ');
COMMIT;
UPDATE c SET v = 'z' WHERE id = 1;
UPDATE c SET w = NULL WHERE id = 3;
COMMIT;
DELETE FROM c WHERE id = 2;
COMMIT;
