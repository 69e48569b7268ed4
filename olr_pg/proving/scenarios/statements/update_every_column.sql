-- purpose: an UPDATE that sets every column, mostly to its present value, as many frameworks do
-- covers: multi-row
CREATE TABLE u (id NUMBER(6) PRIMARY KEY, a VARCHAR2(20), b NUMBER(6), c DATE, d VARCHAR2(20));
INSERT INTO u SELECT LEVEL, 'a' || LEVEL, LEVEL, DATE '2024-01-01', NULL FROM dual CONNECT BY LEVEL <= 6;
COMMIT;
UPDATE u SET id = id, a = a, b = b + 1, c = c, d = d;
COMMIT;
UPDATE u SET a = NULL, b = NULL, c = NULL, d = NULL WHERE id < 3;
COMMIT;
UPDATE u SET id = 7, a = 'x', b = 7, c = DATE '2024-12-31', d = 'y' WHERE id = 6;
COMMIT;
