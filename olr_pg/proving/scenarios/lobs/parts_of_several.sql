-- purpose: parts of several LOBs in several rows are written alternately, in one transaction
-- others: writes of other LOBs occur between those of one LOB; tools that end a value there truncate it
-- covers: several-in-one-transaction, lob-append
-- same: no, DBMS_LOB
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB, d CLOB);
INSERT INTO l SELECT LEVEL, EMPTY_CLOB(), EMPTY_CLOB() FROM dual CONNECT BY LEVEL <= 3;
COMMIT;
-- start
DECLARE
  a CLOB;
  b CLOB;
  e CLOB;
BEGIN
  SELECT c, d INTO a, b FROM l WHERE id = 1 FOR UPDATE;
  SELECT c INTO e FROM l WHERE id = 2 FOR UPDATE;
  FOR i IN 1..4 LOOP
    DBMS_LOB.WRITEAPPEND(a, 1500, RPAD('a' || i, 1500, 'a'));
    DBMS_LOB.WRITEAPPEND(e, 3, 'e' || i || '.');
    DBMS_LOB.WRITEAPPEND(b, 2500, RPAD('b' || i, 2500, 'b'));
  END LOOP;
  UPDATE l SET d = 'whole' WHERE id = 2;
END;
/
COMMIT;
