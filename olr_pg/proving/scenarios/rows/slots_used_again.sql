-- purpose: the slot of a deleted row is used for another row, in the next transaction
-- covers: column-borders
CREATE TABLE s (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO s SELECT LEVEL, 'first' FROM dual CONNECT BY LEVEL <= 20;
COMMIT;
DELETE FROM s WHERE id BETWEEN 5 AND 15;
COMMIT;
INSERT INTO s SELECT 100 + LEVEL, 'second' FROM dual CONNECT BY LEVEL <= 11;
COMMIT;
UPDATE s SET v = v || '!';
DELETE FROM s WHERE id > 105;
COMMIT;
INSERT INTO s VALUES (7, 'third');
COMMIT;
