-- purpose: an immutable table, whose rows have hidden columns that Oracle fills
-- others: tools that count all columns assign values to wrong columns
-- covers: storage-other
-- needs: immutable-tables
CREATE IMMUTABLE TABLE i (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20)) NO DROP UNTIL 0 DAYS IDLE NO DELETE UNTIL 16 DAYS AFTER INSERT;
-- start
INSERT INTO i (id, v) VALUES (1, 'one');
COMMIT;
INSERT INTO i (id, v) SELECT LEVEL + 10, 'v' || LEVEL FROM dual CONNECT BY LEVEL <= 50;
COMMIT;
INSERT INTO i (id, v) VALUES (2, NULL);
ROLLBACK;
