-- purpose: statements with hints and comments, over several lines
-- covers: multi-row
CREATE TABLE h (id NUMBER(4) PRIMARY KEY, v VARCHAR2(60));
INSERT /*+ NOAPPEND */ INTO h
  SELECT LEVEL, -- a number
         'v' || LEVEL /* a text */
  FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
UPDATE /*+ FULL(h) */ h
   SET v = 'it''s -- no comment /* either */'
 WHERE id = 2;
DELETE FROM h -- all of them
 WHERE id > 3;
COMMIT;
