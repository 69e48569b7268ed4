-- purpose: ERASE beyond the end of a LOB erases only the existing part
-- covers: lob-erase
-- same: no, DBMS_LOB
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, b BLOB);
INSERT INTO l VALUES (1, HEXTORAW('0102030405'));
COMMIT;
-- start
DECLARE
  bl BLOB;
  n INTEGER := 100;
BEGIN
  SELECT l.b INTO bl FROM l WHERE id = 1 FOR UPDATE;
  DBMS_LOB.ERASE(bl, n, 4);
END;
/
COMMIT;
