-- purpose: names of tables and columns contain characters that mean something to a tool
-- others: tools fail at names with %, quotes, blanks or points, or find another table
-- covers: multi-row
-- same: no, PostgreSQL folds names otherwise
CREATE TABLE "A%B" (id NUMBER(4) PRIMARY KEY, "P%s" VARCHAR2(10), "Q%(x)s" VARCHAR2(10));
CREATE TABLE "O'Neil" (id NUMBER(4) PRIMARY KEY, "it's" VARCHAR2(10), "{b}" VARCHAR2(10));
CREATE TABLE "dot.ted" (id NUMBER(4) PRIMARY KEY, "a.b" VARCHAR2(10), "a*" VARCHAR2(10));
CREATE TABLE "back\slash" (id NUMBER(4) PRIMARY KEY, "c\d" VARCHAR2(10), "c,d" VARCHAR2(10));
CREATE TABLE "star*" (id NUMBER(4) PRIMARY KEY, "semi;colon" VARCHAR2(10), " lead" VARCHAR2(10), "trail " VARCHAR2(10));
CREATE TABLE "!no" ("ctid" NUMBER(4) PRIMARY KEY, "XMIN" VARCHAR2(10), xmin_ VARCHAR2(10), tableoid VARCHAR2(10));
CREATE TABLE "Größe" (id NUMBER(4) PRIMARY KEY, "naïve" VARCHAR2(10), "日本" VARCHAR2(10));
CREATE TABLE us$1#x (id# NUMBER(4) PRIMARY KEY, offset VARCHAR2(10), limit VARCHAR2(10), analyse VARCHAR2(10), "user" VARCHAR2(10), "oid" NUMBER);
INSERT INTO "A%B" VALUES (1, 'x', 'y');
INSERT INTO "O'Neil" VALUES (1, 'x', 'y');
INSERT INTO "dot.ted" VALUES (1, 'x', 'y');
INSERT INTO "back\slash" VALUES (1, 'x', 'y');
INSERT INTO "star*" VALUES (1, 'x', 'y', 'z');
INSERT INTO "!no" VALUES (1, 'x', 'y', 'z');
INSERT INTO "Größe" VALUES (1, 'x', 'y');
INSERT INTO us$1#x VALUES (1, 'a', 'b', 'c', 'd', 5);
COMMIT;
-- start
INSERT INTO "A%B" VALUES (2, 'x', 'y');
UPDATE "A%B" SET "P%s" = 'n', "Q%(x)s" = NULL WHERE id = 1;
INSERT INTO "O'Neil" VALUES (2, 'x', 'y');
UPDATE "O'Neil" SET "it's" = 'n', "{b}" = NULL WHERE id = 1;
INSERT INTO "dot.ted" VALUES (2, 'x', 'y');
UPDATE "dot.ted" SET "a.b" = 'n', "a*" = 'm' WHERE id = 1;
INSERT INTO "back\slash" VALUES (2, 'x', 'y');
UPDATE "back\slash" SET "c\d" = 'n', "c,d" = 'm' WHERE id = 1;
INSERT INTO "star*" VALUES (2, 'x', 'y', 'z');
UPDATE "star*" SET "semi;colon" = 'n', " lead" = 'm', "trail " = 'o' WHERE id = 1;
INSERT INTO "!no" VALUES (2, 'x', 'y', 'z');
UPDATE "!no" SET "XMIN" = 'n', xmin_ = 'm' WHERE "ctid" = 1;
INSERT INTO "Größe" VALUES (2, 'x', 'y');
UPDATE "Größe" SET "naïve" = 'n', "日本" = 'm' WHERE id = 1;
INSERT INTO us$1#x VALUES (2, 'a', 'b', 'c', 'd', 5);
UPDATE us$1#x SET offset = 'n', limit = 'm', "oid" = 7 WHERE id# = 1;
COMMIT;
DELETE FROM "A%B" WHERE id = 2;
DELETE FROM "O'Neil" WHERE id = 2;
DELETE FROM "dot.ted" WHERE id = 2;
DELETE FROM "back\slash" WHERE id = 2;
COMMIT;
