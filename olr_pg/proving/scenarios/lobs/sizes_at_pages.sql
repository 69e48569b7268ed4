-- purpose: CLOBs that end just before, at, and just after the end of a page of 8 kB
-- covers: lob-out-of-row
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB);
INSERT INTO l SELECT LEVEL, TO_CLOB(RPAD('x', 4000, 'x')) || RPAD('y', 18 + LEVEL, 'y') FROM dual CONNECT BY LEVEL <= 20;
COMMIT;
UPDATE l SET c = c || c WHERE MOD(id, 5) = 0;
COMMIT;
DELETE FROM l WHERE id > 15;
COMMIT;
