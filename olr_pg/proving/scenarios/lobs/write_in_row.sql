-- purpose: DBMS_LOB.WRITE to a LOB in the row: the redo contains the complete LOB
-- covers: lob-write, lob-in-row
-- same: no, DBMS_LOB
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB, b BLOB);
INSERT INTO l VALUES (1, 'hello world', HEXTORAW('00112233445566'));
COMMIT;
DECLARE
  cl CLOB;
  bl BLOB;
BEGIN
  SELECT l.c, l.b INTO cl, bl FROM l WHERE id = 1 FOR UPDATE;
  DBMS_LOB.WRITE(cl, 5, 7, 'there');
  DBMS_LOB.WRITE(bl, 2, 3, HEXTORAW('FFFE'));
END;
/
COMMIT;
DECLARE
  cl CLOB;
BEGIN
  SELECT l.c INTO cl FROM l WHERE id = 1 FOR UPDATE;
  DBMS_LOB.WRITE(cl, 3, 20, 'gap');
END;
/
COMMIT;
