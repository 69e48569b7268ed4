-- purpose: DBMS_LOB.ERASE writes spaces into a CLOB and zero bytes into a BLOB
-- covers: lob-erase
-- same: no, DBMS_LOB
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB, b BLOB);
INSERT INTO l VALUES (1, 'to be erased', HEXTORAW('FFFFFFFFFFFF'));
INSERT INTO l VALUES (2, TO_CLOB(RPAD('x', 4000, 'x')) || RPAD('y', 4000, 'y'), NULL);
COMMIT;
-- start
DECLARE
  cl CLOB;
  bl BLOB;
  n INTEGER := 2;
BEGIN
  SELECT l.c, l.b INTO cl, bl FROM l WHERE id = 1 FOR UPDATE;
  DBMS_LOB.ERASE(cl, n, 4);
  n := 3;
  DBMS_LOB.ERASE(bl, n, 2);
END;
/
COMMIT;
DECLARE
  cl CLOB;
  n INTEGER := 100;
BEGIN
  SELECT l.c INTO cl FROM l WHERE id = 2 FOR UPDATE;
  DBMS_LOB.ERASE(cl, n, 3950);
END;
/
COMMIT;
