-- purpose: DBMS_LOB.COPY and APPEND of one row's LOB to another's
-- covers: lob-write, lob-append
-- same: no, DBMS_LOB
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB);
INSERT INTO l VALUES (1, 'abcdefghij');
INSERT INTO l VALUES (2, '0123456789');
COMMIT;
-- start
DECLARE
  a CLOB;
  b CLOB;
BEGIN
  SELECT c INTO a FROM l WHERE id = 1 FOR UPDATE;
  SELECT c INTO b FROM l WHERE id = 2 FOR UPDATE;
  DBMS_LOB.COPY(a, b, 3, 4, 6);
  DBMS_LOB.APPEND(b, a);
END;
/
COMMIT;
