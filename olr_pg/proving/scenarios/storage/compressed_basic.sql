-- purpose: a table with basic compression, loaded with a direct-path load and then changed
-- others: the rows of a compressed block share values; tools that read them as normal rows return wrong values
-- covers: compression
-- needs: compression
CREATE TABLE c (id NUMBER(6) PRIMARY KEY, v VARCHAR2(50)) ROW STORE COMPRESS BASIC;
-- start
INSERT /*+ APPEND */ INTO c SELECT LEVEL, 'the same text' FROM dual CONNECT BY LEVEL <= 500;
COMMIT;
UPDATE c SET v = 'another' WHERE id < 20;
DELETE FROM c WHERE id BETWEEN 20 AND 40;
COMMIT;
