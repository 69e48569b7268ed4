-- purpose: DBMS_LOB fails for a row that is not locked, and changes nothing
-- covers: lob-write, fail-halfway
-- same: no, DBMS_LOB
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB);
INSERT INTO l VALUES (1, 'one');
COMMIT;
-- start
-- error: ORA-22920
DECLARE
  a CLOB;
BEGIN
  INSERT INTO l VALUES (2, 'gone with the block');
  SELECT c INTO a FROM l WHERE id = 1;
  DBMS_LOB.WRITE(a, 1, 1, 'x');
END;
/
INSERT INTO l VALUES (3, 'kept');
COMMIT;
