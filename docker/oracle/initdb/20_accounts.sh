#!/bin/bash
# Creates the account of olr_pg, the scratch schema of `olr-pg prove`, and a schema with a sample table, with
# the scripts in sql/oracle. The image runs this script once.
set -euo pipefail
scripts=/opt/olr-pg/sql
as_sys="sys/\"$ORACLE_PASSWORD\"@localhost:1521/$ORACLE_PDB as sysdba"

# The image's own createAppUser would get the password as an argument, so it is not used.
#
# run CONNECTION SCRIPT ARGUMENT…: all users of the host can see the arguments of a program, so SQL*Plus reads
# the passwords from its standard input. It ends at the end of its input, or if it cannot connect.
run() {
    local connection=$1
    local script=$2
    shift 2
    {
        printf 'WHENEVER SQLERROR EXIT FAILURE\nCONNECT %s\nWHENEVER SQLERROR CONTINUE\n' "$connection"
        printf '@%s' "$script"
        if (($#)); then
            printf ' "%s"' "$@"
        fi
        printf '\n'
    } | sqlplus -s /nolog
}

run "/ as sysdba" "$scripts/user_pdb.sql" "$ORACLE_PDB" OLR "$OLR_PASSWORD"
run "$as_sys" "$scripts/grants.sql" OLR
run "$as_sys" "$scripts/prove.sql" OLR_PG_PROVE "$PROVE_PASSWORD" OLR
run "$as_sys" "$(dirname "$0")/shop_user.txt" SHOP "$SHOP_PASSWORD"
run "SHOP/\"$SHOP_PASSWORD\"@localhost:1521/$ORACLE_PDB" "$(dirname "$0")/shop.txt"
run "$as_sys" "$scripts/load_grants.sql" OLR SHOP
touch /opt/oracle/oradata/olr-pg-is-ready
