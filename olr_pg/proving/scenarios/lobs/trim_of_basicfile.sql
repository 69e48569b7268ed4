-- purpose: TRIM and WRITE of BASICFILE LOBs, whose pages are never overwritten
-- covers: lob-trim, lob-write
-- same: no, DBMS_LOB
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB) LOB (c) STORE AS BASICFILE;
INSERT INTO l VALUES (1, TO_CLOB(RPAD('x', 4000, 'x')) || RPAD('y', 4000, 'y'));
INSERT INTO l VALUES (2, 'small');
COMMIT;
-- start
DECLARE
  cl CLOB;
BEGIN
  SELECT l.c INTO cl FROM l WHERE id = 1 FOR UPDATE;
  DBMS_LOB.WRITE(cl, 4, 10, 'here');
  DBMS_LOB.TRIM(cl, 4100);
  SELECT l.c INTO cl FROM l WHERE id = 2 FOR UPDATE;
  DBMS_LOB.WRITEAPPEND(cl, 5, ' more');
END;
/
COMMIT;
UPDATE l SET c = 'set' WHERE id = 1;
COMMIT;
