-- Supplemental logging (Oracle 11.2 to 26ai): the redo of updates and deletes then contains the columns that
-- identify the row. Run it as SYS; in a CDB, run it in the root (CDB$ROOT), because steps 1 and 3 fail in a PDB.
-- It performs steps 1 to 3. To log fewer tables, replace step 2 by one of its alternatives. `olr-pg doctor`
-- reports the tables whose key is not logged.

-- 1. Minimal supplemental logging, which is always required: without it, olr_pg cannot join rows that are
--    stored in several pieces.
ALTER DATABASE ADD SUPPLEMENTAL LOG DATA;

-- 2. The primary key of every table. If a table has no primary key, Oracle logs a unique key whose columns are
--    NOT NULL, or else all columns.
ALTER DATABASE ADD SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS;

-- Alternative, in one PDB (12.1 and later):
--   ALTER PLUGGABLE DATABASE ADD SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS;
-- Alternative, for single tables:
--   ALTER TABLE "SHOP"."ORDERS" ADD SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS;
-- Alternative, for a table without a primary key, or if you need the complete old row of each change:
--   ALTER TABLE "SHOP"."EVENTS" ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS;

-- 3. Redo for all changes, also for NOLOGGING operations.
ALTER DATABASE FORCE LOGGING;
