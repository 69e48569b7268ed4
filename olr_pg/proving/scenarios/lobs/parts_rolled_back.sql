-- purpose: writes to parts of LOBs are rolled back, to a savepoint and as a whole
-- covers: lob-write, lob-append, lob-rolled-back
-- same: no, DBMS_LOB
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB);
INSERT INTO l VALUES (1, 'one');
INSERT INTO l VALUES (2, TO_CLOB(RPAD('x', 4000, 'x')) || RPAD('y', 4000, 'y'));
COMMIT;
-- start
DECLARE
  cl CLOB;
BEGIN
  SELECT l.c INTO cl FROM l WHERE id = 1 FOR UPDATE;
  DBMS_LOB.WRITEAPPEND(cl, 5, ' kept');
  SAVEPOINT one;
  DBMS_LOB.WRITEAPPEND(cl, 5, ' gone');
  SELECT l.c INTO cl FROM l WHERE id = 2 FOR UPDATE;
  DBMS_LOB.WRITE(cl, 4, 100, 'gone');
  ROLLBACK TO one;
END;
/
COMMIT;
DECLARE
  cl CLOB;
BEGIN
  SELECT l.c INTO cl FROM l WHERE id = 2 FOR UPDATE;
  DBMS_LOB.TRIM(cl, 100);
END;
/
ROLLBACK;
UPDATE l SET c = c || '!' WHERE id = 2;
COMMIT;
