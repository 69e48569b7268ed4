-- purpose: tables without a primary key, with equal rows
-- covers: multi-row
CREATE TABLE nk (a NUMBER(4), b VARCHAR2(10));
INSERT INTO nk SELECT MOD(LEVEL, 2), 'same' FROM dual CONNECT BY LEVEL <= 6;
COMMIT;
UPDATE nk SET b = 'other' WHERE a = 1;
COMMIT;
DELETE FROM nk WHERE a = 0;
COMMIT;
INSERT INTO nk VALUES (NULL, NULL);
COMMIT;
