-- purpose: texts at the lengths where a column's length takes another form: 1, 249 to 254, 4000 bytes
-- covers: lengths
CREATE TABLE t (id NUMBER(6) PRIMARY KEY, v VARCHAR2(4000), w VARCHAR2(4000));
INSERT INTO t SELECT 240 + LEVEL, RPAD('x', 240 + LEVEL, 'y'), 'after' FROM dual CONNECT BY LEVEL <= 20;
INSERT INTO t VALUES (1, 'x', 'after');
INSERT INTO t VALUES (4000, RPAD('x', 4000, 'z'), 'after');
COMMIT;
UPDATE t SET v = SUBSTR(v, 1, 250) WHERE id > 245;
COMMIT;
UPDATE t SET v = v || 'longer' WHERE id < 260;
COMMIT;
-- error: ORA-12899
INSERT INTO t VALUES (2, 'x', RPAD('x', 4000, 'é') || 'x');
DELETE FROM t WHERE id > 250;
COMMIT;
