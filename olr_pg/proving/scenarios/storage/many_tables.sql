-- purpose: one transaction over tables of every storage: heap, partitioned, index-organised
-- covers: iot, partitions-hash
CREATE TABLE h (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20));
CREATE TABLE p (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20)) PARTITION BY HASH (id) PARTITIONS 2;
CREATE TABLE i (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20)) ORGANIZATION INDEX;
INSERT INTO h SELECT LEVEL, 'h' FROM dual CONNECT BY LEVEL <= 10;
INSERT INTO p SELECT id, 'p' FROM h;
INSERT INTO i SELECT id, 'i' FROM h;
COMMIT;
UPDATE h SET v = 'H' WHERE id < 4;
UPDATE p SET v = 'P' WHERE id < 4;
UPDATE i SET v = 'I' WHERE id < 4;
DELETE FROM h WHERE id > 8;
DELETE FROM p WHERE id > 8;
DELETE FROM i WHERE id > 8;
COMMIT;
