-- purpose: data is appended to a LOB until it leaves its row, and then page by page
-- others: the most usual way to fill a LOB; tools that expect complete values deliver only the last piece
-- covers: lob-append, lob-in-row, lob-out-of-row
-- same: no, DBMS_LOB
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB);
INSERT INTO l VALUES (1, 'start');
COMMIT;
-- start
DECLARE
  cl CLOB;
BEGIN
  SELECT l.c INTO cl FROM l WHERE id = 1 FOR UPDATE;
  FOR i IN 1..6 LOOP
    DBMS_LOB.WRITEAPPEND(cl, 900, RPAD('piece ' || i, 900, '.'));
  END LOOP;
END;
/
COMMIT;
DECLARE
  cl CLOB;
BEGIN
  SELECT l.c INTO cl FROM l WHERE id = 1 FOR UPDATE;
  DBMS_LOB.APPEND(cl, 'the end');
END;
/
COMMIT;
