-- purpose: a table with advanced row compression, whose blocks are compressed during transactions
-- covers: compression
-- needs: compression
CREATE TABLE c (id NUMBER(6) PRIMARY KEY, v VARCHAR2(50)) ROW STORE COMPRESS ADVANCED;
-- start
INSERT INTO c SELECT LEVEL, 'the same text' FROM dual CONNECT BY LEVEL <= 2000;
COMMIT;
UPDATE c SET v = 'another' WHERE MOD(id, 10) = 0;
DELETE FROM c WHERE MOD(id, 10) = 1;
COMMIT;
INSERT INTO c SELECT id + 5000, v FROM c;
COMMIT;
