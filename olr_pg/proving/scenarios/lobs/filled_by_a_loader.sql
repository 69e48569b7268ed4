-- purpose: a row with an empty LOB is inserted, and its LOB is filled through the locator from RETURNING
-- others: most drivers store LOBs like this; the INSERT has an empty value, and the rest are writes
-- covers: lob-append, lob-write, returning
-- same: no, DBMS_LOB
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB, b BLOB);
INSERT INTO l VALUES (1, 'there', NULL);
COMMIT;
-- start
DECLARE
  cl CLOB;
  bl BLOB;
BEGIN
  INSERT INTO l (id, c, b) VALUES (2, EMPTY_CLOB(), EMPTY_BLOB()) RETURNING c, b INTO cl, bl;
  FOR i IN 1..5 LOOP
    DBMS_LOB.WRITEAPPEND(cl, 2000, RPAD('part', 2000, 'p'));
    DBMS_LOB.WRITEAPPEND(bl, 4, HEXTORAW('00FF00FF'));
  END LOOP;
END;
/
COMMIT;
UPDATE l SET b = HEXTORAW('01') WHERE id = 1;
COMMIT;
