-- purpose: other columns of a row with a LOB change; the LOB does not
-- covers: lob-out-of-row
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20), c CLOB, w NUMBER(4));
INSERT INTO l VALUES (1, 'x', RPAD('long', 4000, 'l'), 1);
INSERT INTO l VALUES (2, 'x', 'short', 1);
COMMIT;
UPDATE l SET v = 'y', w = w + 1;
COMMIT;
UPDATE l SET id = id + 10;
COMMIT;
UPDATE l SET c = 'replaced', w = 0 WHERE id = 11;
COMMIT;
