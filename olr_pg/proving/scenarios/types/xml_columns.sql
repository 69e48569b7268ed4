-- purpose: XMLTYPE stored as binary XML and as CLOB, in the row and out of it
-- others: most tools refuse the type; through LogMiner, binary XML is an unreadable BLOB
-- covers: extremes
-- needs: xml
CREATE TABLE x (id NUMBER(4) PRIMARY KEY, b XMLTYPE, c XMLTYPE) XMLTYPE COLUMN b STORE AS BINARY XML XMLTYPE COLUMN c STORE AS CLOB;
-- start
INSERT INTO x VALUES (1, XMLTYPE('<a n="1"><b>text</b><!-- a remark --></a>'), XMLTYPE('<a n="1"><b>text</b></a>'));
INSERT INTO x VALUES (2, NULL, NULL);
COMMIT;
INSERT INTO x SELECT 3, XMLTYPE('<list>' || RPAD('<item>', 3000, '.') || '</item></list>'), NULL FROM dual;
INSERT INTO x SELECT 4, XMLELEMENT("list", XMLAGG(XMLELEMENT("item", XMLATTRIBUTES(LEVEL AS "n"), RPAD('t' || LEVEL, 100, '.')))), NULL FROM dual CONNECT BY LEVEL <= 300;
COMMIT;
UPDATE x SET c = XMLTYPE('<changed/>'), b = XMLTYPE('<changed><twice/></changed>') WHERE id IN (1, 2);
COMMIT;
DELETE FROM x WHERE id = 3;
COMMIT;
