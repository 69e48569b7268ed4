-- purpose: texts of exactly 4,000 bytes in letters of one to four bytes
-- others: readers that count letters where Oracle counts bytes cut the last ones
-- covers: lengths, character-sets
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(4000), w VARCHAR2(4000 CHAR));
INSERT INTO t VALUES (1, RPAD('x', 4000, 'x'), 'x');
INSERT INTO t VALUES (2, REPLACE(RPAD('x', 2000, 'x'), 'x', 'é'), 'x');
INSERT INTO t VALUES (3, REPLACE(RPAD('x', 1333, 'x'), 'x', '日'), 'x');
INSERT INTO t VALUES (4, REPLACE(RPAD('x', 1000, 'x'), 'x', '😀'), 'x');
COMMIT;
UPDATE t SET w = v;
COMMIT;
UPDATE t SET v = 'short', w = SUBSTR(w, 1, 500);
COMMIT;
