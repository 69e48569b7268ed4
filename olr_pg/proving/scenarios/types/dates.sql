-- purpose: the first and the last DATE, leap days, centuries, midnight and the last second
-- covers: extremes
-- same: no, PostgreSQL adds no numbers to timestamps
CREATE TABLE d (id NUMBER(4) PRIMARY KEY, v DATE);
INSERT INTO d VALUES (1, DATE '0001-01-01');
INSERT INTO d VALUES (2, DATE '9999-12-31');
INSERT INTO d VALUES (3, TO_DATE('2000-02-29 23:59:59', 'YYYY-MM-DD HH24:MI:SS'));
INSERT INTO d VALUES (4, TO_DATE('1900-02-28', 'YYYY-MM-DD'));
INSERT INTO d VALUES (5, TO_DATE('1999-12-31 00:00:01', 'YYYY-MM-DD HH24:MI:SS'));
COMMIT;
-- error: ORA-01839
INSERT INTO d VALUES (6, TO_DATE('1900-02-29', 'YYYY-MM-DD'));
UPDATE d SET v = v - 1 WHERE id > 2;
COMMIT;
UPDATE d SET v = ADD_MONTHS(v, 12) WHERE id BETWEEN 3 AND 5;
COMMIT;
UPDATE d SET v = v + 1/86400 WHERE id = 3;
COMMIT;
