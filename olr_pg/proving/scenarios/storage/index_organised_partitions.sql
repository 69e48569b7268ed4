-- purpose: an index-organised table in hash partitions
-- covers: iot, partitions-hash
CREATE TABLE i (id NUMBER(6) PRIMARY KEY, v VARCHAR2(50)) ORGANIZATION INDEX PARTITION BY HASH (id) PARTITIONS 3;
INSERT INTO i SELECT LEVEL, 'v' || LEVEL FROM dual CONNECT BY LEVEL <= 30;
COMMIT;
UPDATE i SET v = v || '!' WHERE MOD(id, 3) = 0;
DELETE FROM i WHERE MOD(id, 5) = 0;
COMMIT;
INSERT INTO i VALUES (5, 'again');
COMMIT;
