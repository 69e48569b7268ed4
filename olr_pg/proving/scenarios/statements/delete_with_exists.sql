-- purpose: DELETE and UPDATE of rows that are selected by other tables
-- covers: multi-row
CREATE TABLE orders (id NUMBER(6) PRIMARY KEY, state VARCHAR2(10));
CREATE TABLE lines (id NUMBER(6), no NUMBER(3), amount NUMBER(8,2), CONSTRAINT lines_pk PRIMARY KEY (id, no));
INSERT INTO orders SELECT LEVEL, 'open' FROM dual CONNECT BY LEVEL <= 20;
INSERT INTO lines SELECT MOD(LEVEL, 15) + 1, LEVEL, LEVEL * 1.5 FROM dual CONNECT BY LEVEL <= 60;
COMMIT;
UPDATE orders SET state = 'empty' WHERE NOT EXISTS (SELECT 1 FROM lines WHERE lines.id = orders.id);
COMMIT;
DELETE FROM lines WHERE id IN (SELECT id FROM orders WHERE MOD(id, 4) = 0);
DELETE FROM orders WHERE state = 'empty' OR NOT EXISTS (SELECT 1 FROM lines WHERE lines.id = orders.id);
COMMIT;
