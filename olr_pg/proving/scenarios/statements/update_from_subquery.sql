-- purpose: several columns set from one subquery, and from one that finds nothing
-- covers: multi-row
CREATE TABLE a (id NUMBER(4) PRIMARY KEY, x VARCHAR2(10), y NUMBER(4));
CREATE TABLE b (id NUMBER(4) PRIMARY KEY, x VARCHAR2(10), y NUMBER(4));
INSERT INTO a SELECT LEVEL, 'a' || LEVEL, LEVEL FROM dual CONNECT BY LEVEL <= 5;
INSERT INTO b SELECT LEVEL * 2, 'b' || LEVEL, LEVEL * 100 FROM dual CONNECT BY LEVEL <= 3;
COMMIT;
UPDATE a SET (x, y) = (SELECT b.x, b.y FROM b WHERE b.id = a.id);
COMMIT;
UPDATE a SET y = (SELECT COUNT(*) FROM b WHERE b.id <= a.id) WHERE x IS NULL;
COMMIT;
DELETE FROM b WHERE id IN (SELECT id FROM a WHERE x IS NOT NULL);
COMMIT;
