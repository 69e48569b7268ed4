-- purpose: NCLOBs with characters outside ASCII, in the row and out of the row
-- covers: lob-in-row, lob-out-of-row
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, n NCLOB);
INSERT INTO l VALUES (1, N'日本語');
INSERT INTO l VALUES (2, REPLACE(RPAD('x', 3000, 'x'), 'x', 'é'));
INSERT INTO l VALUES (3, '😀' || REPLACE(RPAD('x', 1000, 'x'), 'x', '😀'));
COMMIT;
UPDATE l SET n = n || N'本';
COMMIT;
DELETE FROM l WHERE id = 2;
COMMIT;
