-- purpose: DDL with names and defaults that mean something to a tool
-- covers: add-column-default rename-column modify-column
-- same: no, PostgreSQL folds names otherwise
CREATE TABLE "T%1" (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO "T%1" VALUES (1, 'one');
INSERT INTO "T%1" VALUES (2, 'two');
COMMIT;
-- start
ALTER TABLE "T%1" ADD ("n%s" VARCHAR2(60) DEFAULT 'it''s 100% \ {x} %s %(y)s' NOT NULL);
INSERT INTO "T%1" (id, v) VALUES (3, 'three');
UPDATE "T%1" SET v = 'uno' WHERE id = 1;
COMMIT;
ALTER TABLE "T%1" RENAME COLUMN v TO "limit%";
UPDATE "T%1" SET "limit%" = 'dos' WHERE id = 2;
COMMIT;
ALTER TABLE "T%1" MODIFY ("limit%" VARCHAR2(30));
ALTER TABLE "T%1" ADD ("O'B {a}" CHAR(3) DEFAULT '%' NOT NULL);
INSERT INTO "T%1" (id, "limit%", "O'B {a}") VALUES (4, RPAD('f', 30, 'f'), '\');
UPDATE "T%1" SET "n%s" = '%%' WHERE id = 3;
COMMIT;
ALTER TABLE "T%1" SET UNUSED ("n%s");
INSERT INTO "T%1" (id, "limit%") VALUES (5, 'five');
DELETE FROM "T%1" WHERE id = 2;
COMMIT;
