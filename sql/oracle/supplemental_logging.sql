-- Supplemental logging, so that updates and deletes carry what finds their row (11.2 to 26ai).
-- Run as SYS. Take one of the levels below; `olr-pg doctor` says which tables still lack a key.

-- 1. Needed in every case: without it, rows in several pieces cannot be joined.
ALTER DATABASE ADD SUPPLEMENTAL LOG DATA;

-- 2. The key of every table that has a primary key. Tables without one log all their columns.
ALTER DATABASE ADD SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS;

-- Or, from 12.1 on and in the PDB only:
--   ALTER PLUGGABLE DATABASE ADD SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS;
-- Or table by table:
--   ALTER TABLE "SHOP"."ORDERS" ADD SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS;
-- A table without a primary key, or whose whole rows are wanted before each change:
--   ALTER TABLE "SHOP"."EVENTS" ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS;

-- 3. So that nothing is left out of redo.
ALTER DATABASE FORCE LOGGING;
