-- purpose: a transaction is rolled back completely, and leaves no changes between those of others
-- covers: rolled-back
CREATE TABLE r (id NUMBER(4) PRIMARY KEY, v NUMBER(6));
INSERT INTO r SELECT LEVEL, 0 FROM dual CONNECT BY LEVEL <= 50;
COMMIT;
UPDATE r SET v = v + 1;
DELETE FROM r WHERE id > 25;
INSERT INTO r SELECT 100 + LEVEL, 7 FROM dual CONNECT BY LEVEL <= 30;
ROLLBACK;
UPDATE r SET v = v + 2 WHERE id < 10;
COMMIT;
