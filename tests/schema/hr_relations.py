"""Rows of Oracle's sample schema HR, which the examples of its documentation read."""

from __future__ import annotations

from functools import cache
from typing import Final

from olr_pg.dictionary.inventory import Inventory, InventoryTable
from olr_pg.schema.relations import Relations
from tests.schema.shop_relations import SETTINGS, column

EMPLOYEES: Final = InventoryTable(
    owner="HR",
    name="EMPLOYEES",
    columns=(
        column("EMPLOYEE_ID", "NUMBER", length=22, precision=6, scale=0, nullable=False),
        column("FIRST_NAME", "VARCHAR2", length=20, char_length=20),
        column("LAST_NAME", "VARCHAR2", length=25, char_length=25, nullable=False),
        column("HIRE_DATE", "DATE", length=7, nullable=False),
        column("JOB_ID", "VARCHAR2", length=10, char_length=10, nullable=False),
        column("SALARY", "NUMBER", length=22, precision=8, scale=2),
        column("COMMISSION_PCT", "NUMBER", length=22, precision=2, scale=2),
        column("MANAGER_ID", "NUMBER", length=22, precision=6, scale=0),
        column("DEPARTMENT_ID", "NUMBER", length=22, precision=4, scale=0),
    ),
)
DEPARTMENTS: Final = InventoryTable(
    owner="HR",
    name="DEPARTMENTS",
    columns=(
        column("DEPARTMENT_ID", "NUMBER", length=22, precision=4, scale=0, nullable=False),
        column("DEPARTMENT_NAME", "VARCHAR2", length=30, char_length=30, nullable=False),
        column("MANAGER_ID", "NUMBER", length=22, precision=6, scale=0),
        column("LOCATION_ID", "NUMBER", length=22, precision=4, scale=0),
    ),
)
MAKE: Final = """
CREATE SCHEMA hr;
CREATE TABLE hr.departments (department_id smallint NOT NULL,
    department_name varchar(30) NOT NULL, manager_id integer, location_id smallint);
INSERT INTO hr.departments VALUES
    (10, 'Administration', 200, 1700), (20, 'Marketing', 201, 1800),
    (30, 'Purchasing', 114, 1700), (40, 'Human Resources', 203, 2400),
    (50, 'Shipping', 121, 1500), (60, 'IT', 103, 1400), (70, 'Public Relations', 204, 2700),
    (80, 'Sales', 145, 2500), (90, 'Executive', 100, 1700), (100, 'Finance', 108, 1700),
    (110, 'Accounting', 205, 1700), (120, 'Treasury', NULL, 1700);
CREATE TABLE hr.employees (employee_id integer NOT NULL, first_name varchar(20),
    last_name varchar(25) NOT NULL, hire_date timestamp(0) NOT NULL, job_id varchar(10) NOT NULL,
    salary numeric(8,2), commission_pct numeric(2,2), manager_id integer, department_id smallint);
INSERT INTO hr.employees VALUES
    (100, 'Steven', 'King', '2003-06-17', 'AD_PRES', 24000, NULL, NULL, 90),
    (101, 'Neena', 'Kochhar', '2005-09-21', 'AD_VP', 17000, NULL, 100, 90),
    (102, 'Lex', 'De Haan', '2001-01-13', 'AD_VP', 17000, NULL, 100, 90),
    (103, 'Alexander', 'Hunold', '2006-01-03', 'IT_PROG', 9000, NULL, 102, 60),
    (104, 'Bruce', 'Ernst', '2007-05-21', 'IT_PROG', 6000, NULL, 103, 60),
    (105, 'David', 'Austin', '2005-06-25', 'IT_PROG', 4800, NULL, 103, 60),
    (106, 'Valli', 'Pataballa', '2006-02-05', 'IT_PROG', 4800, NULL, 103, 60),
    (107, 'Diana', 'Lorentz', '2007-02-07', 'IT_PROG', 4200, NULL, 103, 60),
    (108, 'Nancy', 'Greenberg', '2002-08-17', 'FI_MGR', 12008, NULL, 101, 100),
    (109, 'Daniel', 'Faviet', '2002-08-16', 'FI_ACCOUNT', 9000, NULL, 108, 100),
    (110, 'John', 'Chen', '2005-09-28', 'FI_ACCOUNT', 8200, NULL, 108, 100),
    (111, 'Ismael', 'Sciarra', '2005-09-30', 'FI_ACCOUNT', 7700, NULL, 108, 100),
    (112, 'Jose Manuel', 'Urman', '2006-03-07', 'FI_ACCOUNT', 7800, NULL, 108, 100),
    (113, 'Luis', 'Popp', '2007-12-07', 'FI_ACCOUNT', 6900, NULL, 108, 100),
    (114, 'Den', 'Raphaely', '2002-12-07', 'PU_MAN', 11000, NULL, 100, 30),
    (115, 'Alexander', 'Khoo', '2003-05-18', 'PU_CLERK', 3100, NULL, 114, 30),
    (116, 'Shelli', 'Baida', '2005-12-24', 'PU_CLERK', 2900, NULL, 114, 30),
    (117, 'Sigal', 'Tobias', '2005-07-24', 'PU_CLERK', 2800, NULL, 114, 30),
    (118, 'Guy', 'Himuro', '2006-11-15', 'PU_CLERK', 2600, NULL, 114, 30),
    (119, 'Karen', 'Colmenares', '2007-08-10', 'PU_CLERK', 2500, NULL, 114, 30),
    (145, 'John', 'Russell', '2004-10-01', 'SA_MAN', 14000, 0.4, 100, 80),
    (146, 'Karen', 'Partners', '2005-01-05', 'SA_MAN', 13500, 0.3, 100, 80),
    (147, 'Alberto', 'Errazuriz', '2005-03-10', 'SA_MAN', 12000, 0.3, 100, 80),
    (148, 'Gerald', 'Cambrault', '2007-10-15', 'SA_MAN', 11000, 0.3, 100, 80),
    (149, 'Eleni', 'Zlotkey', '2008-01-29', 'SA_MAN', 10500, 0.2, 100, 80),
    (178, 'Kimberely', 'Grant', '2007-05-24', 'SA_REP', 7000, 0.15, 149, NULL),
    (200, 'Jennifer', 'Whalen', '2003-09-17', 'AD_ASST', 4400, NULL, 101, 10),
    (201, 'Michael', 'Hartstein', '2004-02-17', 'MK_MAN', 13000, NULL, 100, 20),
    (202, 'Pat', 'Fay', '2005-08-17', 'MK_REP', 6000, NULL, 201, 20),
    (203, 'Susan', 'Mavris', '2002-06-07', 'HR_REP', 6500, NULL, 101, 40),
    (204, 'Hermann', 'Baer', '2002-06-07', 'PR_REP', 10000, NULL, 101, 70),
    (205, 'Shelley', 'Higgins', '2002-06-07', 'AC_MGR', 12008, NULL, 101, 110),
    (206, 'William', 'Gietz', '2002-06-07', 'AC_ACCOUNT', 8300, NULL, 205, 110);
"""


@cache
def hr_relations() -> Relations:
    inventory = Inventory(owners=("HR",), tables=(EMPLOYEES, DEPARTMENTS))
    return Relations(inventory, SETTINGS)
