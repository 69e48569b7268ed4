-- purpose: redo of indexes occurs between the redo of rows
-- covers: multi-row
CREATE TABLE x (id NUMBER(6) PRIMARY KEY, a VARCHAR2(20), b NUMBER(6));
CREATE INDEX x_a ON x (a);
CREATE INDEX x_ba ON x (b, a);
CREATE UNIQUE INDEX x_b ON x (b);
INSERT INTO x SELECT LEVEL, 'a' || MOD(LEVEL, 7), LEVEL * 3 FROM dual CONNECT BY LEVEL <= 50;
COMMIT;
UPDATE x SET a = 'moved' WHERE b < 60;
UPDATE x SET b = b + 1000 WHERE id > 40;
COMMIT;
-- error: ORA-00001
UPDATE x SET b = 3;
DELETE FROM x WHERE a = 'moved';
COMMIT;
