-- purpose: TRUNCATE of a table with LOBs, whose segments also get new numbers
-- covers: truncate
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB);
INSERT INTO l VALUES (1, RPAD('x', 4000, 'y'));
INSERT INTO l VALUES (2, 'small');
COMMIT;
TRUNCATE TABLE l;
INSERT INTO l VALUES (1, RPAD('new', 4000, 'z'));
COMMIT;
UPDATE l SET c = c || 'more';
COMMIT;
