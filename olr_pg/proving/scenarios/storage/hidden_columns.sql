-- purpose: virtual and invisible columns, and those of function-based indexes, are between the stored columns
-- others: tools that count all columns assign the later values to wrong columns
-- covers: storage-other
-- needs: hidden-columns
CREATE TABLE h (id NUMBER(6) PRIMARY KEY, a NUMBER(6), twice NUMBER GENERATED ALWAYS AS (a * 2) VIRTUAL, secret VARCHAR2(10) INVISIBLE, b VARCHAR2(20));
CREATE INDEX h_i ON h (UPPER(b));
-- start
INSERT INTO h (id, a, b) VALUES (1, 1, 'x');
INSERT INTO h (id, a, secret, b) VALUES (2, 2, 's', 'y');
COMMIT;
UPDATE h SET b = b || '!', secret = 'set';
COMMIT;
DELETE FROM h WHERE id = 1;
COMMIT;
