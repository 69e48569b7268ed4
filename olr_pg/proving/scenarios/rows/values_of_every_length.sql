-- purpose: values of 0 to 300 bytes: from 251 bytes on, the length takes three bytes
-- others: readers that expect a length of one byte misread the rest of the row
-- covers: lengths
CREATE TABLE v (id NUMBER(4) PRIMARY KEY, v VARCHAR2(400), r RAW(400), w VARCHAR2(10));
INSERT INTO v SELECT LEVEL, RPAD('x', LEVEL, 'x'), UTL_RAW.CAST_TO_RAW(RPAD('y', LEVEL, 'y')), 'end' FROM dual CONNECT BY LEVEL <= 300;
COMMIT;
UPDATE v SET v = v || 'z' WHERE id BETWEEN 245 AND 260;
COMMIT;
DELETE FROM v WHERE MOD(id, 3) = 0;
COMMIT;
