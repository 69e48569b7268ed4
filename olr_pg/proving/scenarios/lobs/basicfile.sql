-- purpose: BASICFILE LOBs in the row and out of it, whose pages are found by pointers and an index
-- covers: lob-out-of-row, lob-in-row
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB) LOB (c) STORE AS BASICFILE;
INSERT INTO l VALUES (1, TO_CLOB(RPAD('a', 4000, 'A')) || RPAD('b', 4000, 'B') || RPAD('c', 4000, 'C'));
INSERT INTO l VALUES (2, 'in the row');
COMMIT;
UPDATE l SET c = c || c || c WHERE id = 1;
COMMIT;
UPDATE l SET c = c || ' grows' WHERE id = 2;
UPDATE l SET c = 'shrinks' WHERE id = 1;
COMMIT;
