-- purpose: NUMBERs of one to five digits around each power of a hundred: Oracle stores pairs of digits and an exponent
-- others: readers that take the last byte for a digit, or drop a pair of zeros, are wrong at the borders
-- covers: extremes
CREATE TABLE n (id NUMBER(4) PRIMARY KEY, v NUMBER);
INSERT INTO n SELECT LEVEL, POWER(10, LEVEL - 10) FROM dual CONNECT BY LEVEL <= 20;
INSERT INTO n SELECT 100 + LEVEL, POWER(10, LEVEL) - 1 FROM dual CONNECT BY LEVEL <= 20;
INSERT INTO n SELECT 200 + LEVEL, 1 - POWER(10, LEVEL) FROM dual CONNECT BY LEVEL <= 20;
INSERT INTO n SELECT 300 + LEVEL, LEVEL * 1010101 FROM dual CONNECT BY LEVEL <= 20;
COMMIT;
UPDATE n SET v = -v;
COMMIT;
UPDATE n SET v = v + 1 WHERE id > 100;
COMMIT;
UPDATE n SET v = 0 WHERE MOD(id, 3) = 0;
COMMIT;
