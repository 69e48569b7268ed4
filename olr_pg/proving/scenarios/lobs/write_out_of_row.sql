-- purpose: DBMS_LOB.WRITE changes a few characters in the middle of a LOB of several pages
-- others: the redo contains only the written part; tools deliver this part as the complete value, or fail
-- covers: lob-write, lob-out-of-row
-- same: no, DBMS_LOB
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB, b BLOB);
INSERT INTO l VALUES (1, TO_CLOB(RPAD('x', 4000, 'x')) || RPAD('y', 4000, 'y') || RPAD('z', 4000, 'z'), UTL_RAW.CAST_TO_RAW(RPAD('b', 2000, 'b')));
INSERT INTO l VALUES (2, RPAD('second', 4000, '.'), NULL);
COMMIT;
DECLARE
  cl CLOB;
BEGIN
  SELECT c INTO cl FROM l WHERE id = 1 FOR UPDATE;
  DBMS_LOB.WRITE(cl, 5, 3998, 'WRITE');
  DBMS_LOB.WRITE(cl, 3, 1, 'one');
END;
/
COMMIT;
UPDATE l SET c = 'whole again' WHERE id = 1;
COMMIT;
