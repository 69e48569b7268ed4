-- purpose: a distributed transaction is rolled back after its first phase
-- covers: xa
-- needs: xa
-- same: no, XA
CREATE TABLE x (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO x VALUES (1, 'start');
COMMIT;
-- start
DECLARE
  rc PLS_INTEGER;
BEGIN
  rc := DBMS_XA.XA_START(DBMS_XA_XID(4712), DBMS_XA.TMNOFLAGS);
  DELETE FROM x;
  rc := DBMS_XA.XA_END(DBMS_XA_XID(4712), DBMS_XA.TMSUCCESS);
  rc := DBMS_XA.XA_PREPARE(DBMS_XA_XID(4712));
  rc := DBMS_XA.XA_ROLLBACK(DBMS_XA_XID(4712));
END;
/
UPDATE x SET v = 'after';
COMMIT;
