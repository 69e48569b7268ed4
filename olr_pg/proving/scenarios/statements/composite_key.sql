-- purpose: a key of three columns, in an order other than that of the table's columns
-- covers: multi-row
CREATE TABLE k (v VARCHAR2(20), day DATE, shop VARCHAR2(5), no NUMBER(4), CONSTRAINT k_pk PRIMARY KEY (shop, day, no));
INSERT INTO k SELECT 'v', DATE '2024-01-01' + MOD(LEVEL, 3), 'S' || MOD(LEVEL, 2), LEVEL FROM dual CONNECT BY LEVEL <= 12;
COMMIT;
UPDATE k SET v = 'changed' WHERE shop = 'S1' AND day = DATE '2024-01-02';
COMMIT;
UPDATE k SET shop = 'X' || no WHERE no < 4;
COMMIT;
DELETE FROM k WHERE day = DATE '2024-01-01';
COMMIT;
