-- purpose: an index-organised table whose last columns are in an overflow segment
-- others: rows are in two segments; some tools deliver only the part in the index
-- covers: iot
-- needs: iot-overflow
CREATE TABLE i (id NUMBER(6) PRIMARY KEY, a VARCHAR2(20), b VARCHAR2(2000)) ORGANIZATION INDEX INCLUDING a OVERFLOW;
INSERT INTO i SELECT LEVEL, 'a' || LEVEL, RPAD('b', 500, 'b') FROM dual CONNECT BY LEVEL <= 20;
COMMIT;
UPDATE i SET b = 'short' WHERE id < 5;
UPDATE i SET a = 'changed' WHERE id > 15;
COMMIT;
DELETE FROM i WHERE MOD(id, 2) = 0;
COMMIT;
