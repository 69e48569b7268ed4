-- purpose: 300,000 rows are inserted and rolled back while another session commits
-- others: tools that deliver changes before the commit must undo them
-- covers: 300000-rows, rolled-back
-- large
CREATE TABLE g (id NUMBER(8) PRIMARY KEY, v VARCHAR2(100));
CREATE TABLE other (id NUMBER(8) PRIMARY KEY);
INSERT INTO other VALUES (1);
COMMIT;
-- start
INSERT INTO g SELECT LEVEL, RPAD('row', 60, 'x') FROM dual CONNECT BY LEVEL <= 300000;
-- session: B
INSERT INTO other VALUES (2);
COMMIT;
-- session: A
ROLLBACK;
INSERT INTO g VALUES (1, 'kept');
COMMIT;
