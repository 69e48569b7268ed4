-- purpose: DBMS_LOB.TRIM shortens LOBs: in the row, on their pages, from pages into the row, and to length 0
-- others: only the new length is written; tools that look for pages keep the old value
-- covers: lob-trim
-- same: no, DBMS_LOB
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB);
INSERT INTO l VALUES (1, 'in the row');
INSERT INTO l VALUES (2, TO_CLOB(RPAD('x', 4000, 'x')) || RPAD('y', 4000, 'y'));
INSERT INTO l VALUES (3, TO_CLOB(RPAD('x', 4000, 'x')) || RPAD('y', 4000, 'y'));
INSERT INTO l VALUES (4, RPAD('z', 3000, 'z'));
COMMIT;
-- start
DECLARE
  cl CLOB;
BEGIN
  SELECT l.c INTO cl FROM l WHERE id = 1 FOR UPDATE;
  DBMS_LOB.TRIM(cl, 2);
  SELECT l.c INTO cl FROM l WHERE id = 2 FOR UPDATE;
  DBMS_LOB.TRIM(cl, 5000);
  SELECT l.c INTO cl FROM l WHERE id = 3 FOR UPDATE;
  DBMS_LOB.TRIM(cl, 10);
  SELECT l.c INTO cl FROM l WHERE id = 4 FOR UPDATE;
  DBMS_LOB.TRIM(cl, 0);
END;
/
COMMIT;
-- error: ORA-22926
DECLARE
  cl CLOB;
BEGIN
  SELECT l.c INTO cl FROM l WHERE id = 1 FOR UPDATE;
  DBMS_LOB.TRIM(cl, 100);
END;
/
UPDATE l SET c = 'set ' || id;
COMMIT;
