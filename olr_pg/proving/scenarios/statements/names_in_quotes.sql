-- purpose: names in lower case, with spaces, and reserved words
-- covers: multi-row
-- same: no, PostgreSQL folds names otherwise
CREATE TABLE "Mixed Case" ("id" NUMBER(4) PRIMARY KEY, "Value" VARCHAR2(10), "SELECT" NUMBER(4));
INSERT INTO "Mixed Case" VALUES (1, 'x', 2);
INSERT INTO "Mixed Case" ("SELECT", "id") VALUES (3, 4);
COMMIT;
UPDATE "Mixed Case" SET "Value" = 'y' WHERE "SELECT" = 3;
COMMIT;
