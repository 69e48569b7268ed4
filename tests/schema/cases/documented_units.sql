## 2-4 declaring and initialising variables
DECLARE
  hours_worked INTEGER := 40;
  employee_count INTEGER := 0;
  pi CONSTANT REAL := 3.14159;
  radius REAL := 1;
  area REAL := (pi * radius**2);
BEGIN
  DBMS_OUTPUT.PUT_LINE(hours_worked || ' ' || employee_count || ' ' || area);
END;
> 40 0 3.14159
## 2-6 a variable has the value NULL by default
DECLARE
  counter INTEGER;
BEGIN
  counter := counter + 1;
  IF counter IS NULL THEN
    DBMS_OUTPUT.PUT_LINE('counter is NULL.');
  END IF;
END;
> counter is NULL.
## 2-7 NOT NULL constraint and NATURAL subtypes
DECLARE
  acct_id INTEGER(4) NOT NULL := 9999;
  a NATURALN := 9999;
  b POSITIVEN := 8;
BEGIN
  DBMS_OUTPUT.PUT_LINE(acct_id + a + b);
END;
! NATURALN
## 2-12 %TYPE of a column and of a variable
DECLARE
  surname employees.last_name%TYPE;
  name VARCHAR(25) NOT NULL := 'Smith';
  other name%TYPE := 'Jones';
BEGIN
  DBMS_OUTPUT.PUT_LINE('name=' || name);
  DBMS_OUTPUT.PUT_LINE('other=' || other);
  DBMS_OUTPUT.PUT_LINE('surname=' || surname);
END;
> name=Smith
> other=Jones
> surname=
## 2-15 scope and visibility: an inner block hides a name
DECLARE
  a CHAR;
  b REAL;
BEGIN
  a := 'x'; b := 1;
  DECLARE
    a INTEGER;
    c REAL;
  BEGIN
    a := 5; c := b + 1;
    DBMS_OUTPUT.PUT_LINE(a || ',' || b || ',' || c);
  END;
  DECLARE
    d REAL := 3;
  BEGIN
    DBMS_OUTPUT.PUT_LINE(a || d);
  END;
END;
> 5,1,2
> x3
## 2-17 qualifying a hidden name with the label of its block
PROCEDURE p IS
BEGIN
  <<outer>>
  DECLARE
    birthdate DATE := DATE '1970-08-09';
  BEGIN
    DECLARE
      birthdate DATE := DATE '1970-09-29';
    BEGIN
      IF birthdate = outer.birthdate THEN
        DBMS_OUTPUT.PUT_LINE('Same Birthday');
      ELSE
        DBMS_OUTPUT.PUT_LINE('Different Birthday');
      END IF;
    END;
  END;
END;
> Different Birthday
## 2-18 qualifying a name with the name of its subprogram
PROCEDURE check_credit(credit_limit NUMBER) IS
  rating NUMBER := 3;
BEGIN
  IF check_credit.credit_limit > check_credit.rating THEN
    DBMS_OUTPUT.PUT_LINE('rating ' || check_credit.rating);
  END IF;
END;
/
$ CALL hr.check_credit(10)
> rating 3
## 2-22 a label on several blocks and statements
PROCEDURE p IS
BEGIN
  <<compute_ratio>>
  <<another_label>>
  DECLARE
    numerator NUMBER := 22;
    denominator NUMBER := 7;
  BEGIN
    <<inner_label>>
    DECLARE
      denominator NUMBER := 0;
    BEGIN
      DBMS_OUTPUT.PUT_LINE(ROUND(compute_ratio.numerator / compute_ratio.denominator, 3));
      DBMS_OUTPUT.PUT_LINE(denominator);
    END inner_label;
  END compute_ratio;
END;
> 3.143
> 0
## 2-24 assigning values to variables
DECLARE
  wages NUMBER;
  hours_worked NUMBER := 40;
  hourly_salary NUMBER := 22.50;
  bonus NUMBER := 150;
  country VARCHAR2(128);
  counter NUMBER := 0;
  done BOOLEAN;
  valid_id BOOLEAN;
BEGIN
  wages := (hours_worked * hourly_salary) + bonus;
  country := UPPER('Canada');
  done := (counter > 100);
  valid_id := TRUE;
  IF valid_id AND NOT done THEN
    DBMS_OUTPUT.PUT_LINE(country || wages);
  END IF;
END;
> CANADA1050
## 2-25 assigning a value with SELECT INTO
DECLARE
  bonus NUMBER(8,2);
BEGIN
  SELECT salary * 0.10 INTO bonus FROM employees WHERE employee_id = 100;
  DBMS_OUTPUT.PUT_LINE('bonus = ' || TO_CHAR(bonus));
END;
> bonus = 2400
## 2-26 assigning a value as an IN OUT parameter
PROCEDURE adjust_salary(emp NUMBER, sal IN OUT NUMBER, adjustment NUMBER) IS
BEGIN
  sal := sal + adjustment;
END;
/
DECLARE
  emp_salary NUMBER(8,2);
BEGIN
  SELECT salary INTO emp_salary FROM employees WHERE employee_id = 103;
  adjust_salary(103, emp_salary, 1000);
  DBMS_OUTPUT.PUT_LINE('After: ' || emp_salary);
END;
> After: 10000
## 2-27 assigning a BOOLEAN
DECLARE
  done BOOLEAN;
  counter NUMBER := 0;
BEGIN
  done := FALSE;
  WHILE done != TRUE LOOP
    counter := counter + 1;
    done := (counter > 500);
  END LOOP;
  DBMS_OUTPUT.PUT_LINE(counter);
END;
> 501
## 2-28 concatenation treats NULL as nothing
DECLARE
  x VARCHAR2(4) := 'suit';
  y VARCHAR2(4);
BEGIN
  DBMS_OUTPUT.PUT_LINE(x || y || 'case');
  DBMS_OUTPUT.PUT_LINE('apple' || NULL || '' || 'sauce');
END;
> suitcase
> applesauce
## 2-30 operator precedence
DECLARE
  a INTEGER := 1+2**2;
  b INTEGER := (1+2)**2;
  c INTEGER := ((1+2)*(3+4))/7;
BEGIN
  DBMS_OUTPUT.PUT_LINE(a || ' ' || b || ' ' || c);
END;
> 5 9 3
## 2-34 short-circuit evaluation
DECLARE
  on_hand INTEGER := 0;
  on_order INTEGER := 100;
BEGIN
  IF (on_hand = 0) OR ((on_order / on_hand) < 5) THEN
    DBMS_OUTPUT.PUT_LINE('On hand quantity is zero.');
  END IF;
END;
> On hand quantity is zero.
## 2-37 NULL in comparisons and conditions
DECLARE
  a NUMBER := NULL;
  b NUMBER := NULL;
  x NUMBER := 5;
BEGIN
  IF a = b THEN DBMS_OUTPUT.PUT_LINE('a = b');
  ELSIF a != b THEN DBMS_OUTPUT.PUT_LINE('a != b');
  ELSE DBMS_OUTPUT.PUT_LINE('cannot tell');
  END IF;
  IF NOT (x > a) THEN DBMS_OUTPUT.PUT_LINE('not'); ELSE DBMS_OUTPUT.PUT_LINE('neither'); END IF;
END;
> cannot tell
> neither
## 2-46 LIKE with an escape character
PROCEDURE half_off(sale_sign VARCHAR2) IS
BEGIN
  IF sale_sign LIKE '50\% off!' ESCAPE '\' THEN
    DBMS_OUTPUT.PUT_LINE('TRUE');
  ELSE
    DBMS_OUTPUT.PUT_LINE('FALSE');
  END IF;
END;
/
$ CALL hr.half_off('Going out of business!')
$ CALL hr.half_off('50% off!')
> FALSE
> TRUE
## 2-50 BETWEEN and IN with NULL
DECLARE
  letter VARCHAR2(1) := 'm';
  n VARCHAR2(1);
BEGIN
  IF letter IN ('a', 'b', 'c') THEN DBMS_OUTPUT.PUT_LINE('in'); ELSE DBMS_OUTPUT.PUT_LINE('out'); END IF;
  IF letter NOT IN (n, 'b') THEN DBMS_OUTPUT.PUT_LINE('not in'); ELSE DBMS_OUTPUT.PUT_LINE('unknown'); END IF;
  IF 2 BETWEEN 1 AND 3 THEN DBMS_OUTPUT.PUT_LINE('between'); END IF;
END;
> out
> unknown
> between
## 2-51 simple CASE expression
DECLARE
  grade CHAR(1) := 'B';
  appraisal VARCHAR2(20);
BEGIN
  appraisal := CASE grade WHEN 'A' THEN 'Excellent' WHEN 'B' THEN 'Very Good' ELSE 'No such grade' END;
  DBMS_OUTPUT.PUT_LINE('Grade ' || grade || ' is ' || appraisal);
END;
> Grade B is Very Good
## 2-52 simple CASE expression with WHEN NULL
DECLARE
  grade CHAR(1);
  appraisal VARCHAR2(20);
BEGIN
  appraisal := CASE grade WHEN NULL THEN 'No grade' WHEN 'A' THEN 'Excellent' ELSE 'No such grade' END;
  DBMS_OUTPUT.PUT_LINE(appraisal);
END;
> No such grade
## 2-53 searched CASE expression that calls a function
FUNCTION attends(id NUMBER) RETURN BOOLEAN IS BEGIN RETURN id <> 8429862; END;
/
DECLARE
  grade CHAR(1) := 'B';
  id NUMBER := 8429862;
  appraisal VARCHAR2(120);
BEGIN
  appraisal := CASE WHEN attends(id) = FALSE THEN 'Poor (poor attendance)'
    WHEN grade = 'F' THEN 'Poor' ELSE 'No such grade' END;
  DBMS_OUTPUT.PUT_LINE(appraisal);
END;
> Poor (poor attendance)
## 2-54 conditional compilation
FUNCTION f RETURN NUMBER IS
BEGIN
  $IF DBMS_DB_VERSION.VER_LE_10_1 $THEN RETURN 1; $ELSE RETURN 2; $END
END;
/
$ SELECT hr.f()
! *
## 3-1 a CHAR value is padded with blanks
DECLARE
  first_name CHAR(10) := 'John ';
  last_name VARCHAR2(10) := 'Chen ';
BEGIN
  DBMS_OUTPUT.PUT_LINE('*' || first_name || '*');
  DBMS_OUTPUT.PUT_LINE('*' || last_name || '*');
END;
> *John      *
> *Chen *
## 3-5 overflow of PLS_INTEGER
DECLARE
  p1 PLS_INTEGER := 2147483647;
  p2 PLS_INTEGER := 1;
  n NUMBER;
BEGIN
  n := p1 + p2;
EXCEPTION WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('overflow');
END;
> overflow
## 3-7 a constrained subtype
DECLARE
  SUBTYPE balance IS NUMBER(8,2);
  checking_account balance;
BEGIN
  checking_account := 2000.00;
  checking_account := 1000000.00;
EXCEPTION WHEN VALUE_ERROR THEN DBMS_OUTPUT.PUT_LINE('too large');
END;
> too large
## 3-8 an unconstrained subtype
DECLARE
  SUBTYPE counter IS PLS_INTEGER NOT NULL;
  rows_ counter := 0;
BEGIN
  rows_ := rows_ + 1;
  DBMS_OUTPUT.PUT_LINE(rows_);
END;
> 1
## 4-1 IF THEN
PROCEDURE p(sales NUMBER, quota NUMBER, emp_id NUMBER) IS
  bonus NUMBER := 0;
  updated VARCHAR2(3) := 'No';
BEGIN
  IF sales > (quota + 200) THEN
    bonus := (sales - quota)/4;
    UPDATE employees SET salary = salary + bonus WHERE employee_id = emp_id;
    updated := 'Yes';
  END IF;
  DBMS_OUTPUT.PUT_LINE('Table updated?  ' || updated || ', bonus = ' || bonus || '.');
END p;
/
$ CALL hr.p(10100, 10000, 120)
$ CALL hr.p(10500, 10000, 121)
> Table updated?  No, bonus = 0.
> Table updated?  Yes, bonus = 125.
## 4-3 nested IF THEN ELSE
PROCEDURE p(sales NUMBER, quota NUMBER, emp_id NUMBER) IS
  bonus NUMBER := 0;
BEGIN
  IF sales > (quota + 200) THEN
    bonus := (sales - quota)/4;
  ELSE
    IF sales > quota THEN bonus := 50; ELSE bonus := 0; END IF;
  END IF;
  DBMS_OUTPUT.PUT_LINE('bonus = ' || bonus);
  UPDATE employees SET salary = salary + bonus WHERE employee_id = emp_id;
END p;
/
$ CALL hr.p(10100, 10000, 100)
$ SELECT salary FROM hr.employees WHERE employee_id = 100
> bonus = 50
= 24050
## 4-6 simple CASE statement
DECLARE
  grade CHAR(1);
BEGIN
  grade := 'B';
  CASE grade
    WHEN 'A' THEN DBMS_OUTPUT.PUT_LINE('Excellent');
    WHEN 'B' THEN DBMS_OUTPUT.PUT_LINE('Very Good');
    ELSE DBMS_OUTPUT.PUT_LINE('No such grade');
  END CASE;
END;
> Very Good
## 4-8 searched CASE statement whose missing ELSE is handled
DECLARE
  grade CHAR(1);
BEGIN
  grade := 'Z';
  CASE
    WHEN grade = 'A' THEN DBMS_OUTPUT.PUT_LINE('Excellent');
    WHEN grade = 'F' THEN DBMS_OUTPUT.PUT_LINE('Poor');
  END CASE;
EXCEPTION
  WHEN CASE_NOT_FOUND THEN DBMS_OUTPUT.PUT_LINE('No such grade');
END;
> No such grade
## 4-9 basic LOOP with EXIT
DECLARE
  x NUMBER := 0;
BEGIN
  LOOP
    DBMS_OUTPUT.PUT_LINE('Inside loop:  x = ' || TO_CHAR(x));
    x := x + 1;
    IF x > 3 THEN EXIT; END IF;
  END LOOP;
  DBMS_OUTPUT.PUT_LINE(' After loop:  x = ' || TO_CHAR(x));
END;
> Inside loop:  x = 0
> Inside loop:  x = 1
> Inside loop:  x = 2
> Inside loop:  x = 3
>  After loop:  x = 4
## 4-11 nested labelled loops
DECLARE
  s PLS_INTEGER := 0;
  i PLS_INTEGER := 0;
  j PLS_INTEGER;
BEGIN
  <<outer_loop>>
  LOOP
    i := i + 1;
    j := 0;
    <<inner_loop>>
    LOOP
      j := j + 1;
      s := s + i * j;
      EXIT inner_loop WHEN (j > 5);
      EXIT outer_loop WHEN ((i * j) > 15);
    END LOOP inner_loop;
  END LOOP outer_loop;
  DBMS_OUTPUT.PUT_LINE('The sum of products equals: ' || TO_CHAR(s));
END;
> The sum of products equals: 166
## 4-12 CONTINUE
DECLARE
  x NUMBER := 0;
BEGIN
  LOOP
    x := x + 1;
    CONTINUE WHEN x < 3;
    DBMS_OUTPUT.PUT_LINE('after CONTINUE: ' || x);
    EXIT WHEN x = 4;
  END LOOP;
END;
> after CONTINUE: 3
> after CONTINUE: 4
## 4-14 FOR LOOP with equal and reversed bounds
BEGIN
  FOR i IN 3..3 LOOP DBMS_OUTPUT.PUT_LINE(i); END LOOP;
  FOR i IN 3..1 LOOP DBMS_OUTPUT.PUT_LINE(i); END LOOP;
END;
> 3
## 4-15 REVERSE FOR LOOP
BEGIN
  FOR i IN REVERSE 1..3 LOOP DBMS_OUTPUT.PUT_LINE(i); END LOOP;
  FOR i IN REVERSE 3..1 LOOP DBMS_OUTPUT.PUT_LINE(-i); END LOOP;
END;
> 3
> 2
> 1
## 4-16 simulating a step
DECLARE
  step PLS_INTEGER := 5;
BEGIN
  FOR i IN 1..3 LOOP
    DBMS_OUTPUT.PUT_LINE(i * step);
  END LOOP;
END;
> 5
> 10
> 15
## 4-19 the loop index hides a variable
DECLARE
  i NUMBER := 5;
BEGIN
  FOR i IN 1..3 LOOP
    DBMS_OUTPUT.PUT_LINE('Inside loop, i is ' || TO_CHAR(i));
  END LOOP;
  DBMS_OUTPUT.PUT_LINE('Outside loop, i is ' || TO_CHAR(i));
END;
> Inside loop, i is 1
> Inside loop, i is 2
> Inside loop, i is 3
> Outside loop, i is 5
## 4-20 a hidden variable, qualified by a label
PROCEDURE p IS
BEGIN
  <<main>>
  DECLARE
    i NUMBER := 5;
  BEGIN
    FOR i IN 1..2 LOOP
      DBMS_OUTPUT.PUT_LINE('local: ' || TO_CHAR(i) || ', global: ' || TO_CHAR(main.i));
    END LOOP;
  END main;
END;
> local: 1, global: 5
> local: 2, global: 5
## 4-21 nested loops with the same index
BEGIN
  <<outer_loop>>
  FOR i IN 1..2 LOOP
    <<inner_loop>>
    FOR i IN 1..2 LOOP
      IF outer_loop.i = 2 THEN
        DBMS_OUTPUT.PUT_LINE('outer: ' || TO_CHAR(outer_loop.i) || ' inner: ' || TO_CHAR(inner_loop.i));
      END IF;
    END LOOP inner_loop;
  END LOOP outer_loop;
END;
> outer: 2 inner: 1
> outer: 2 inner: 2
## 4-23 bounds from variables are evaluated once
DECLARE
  last NUMBER := 3;
BEGIN
  FOR i IN 1..last LOOP
    last := 1;
    DBMS_OUTPUT.PUT_LINE(i);
  END LOOP;
END;
> 1
> 2
> 3
## 4-25 EXIT WHEN in a loop over a cursor
DECLARE
  v_employees employees%ROWTYPE;
  CURSOR c1 IS SELECT * FROM employees ORDER BY employee_id;
BEGIN
  OPEN c1;
  FOR i IN 1..10 LOOP
    FETCH c1 INTO v_employees;
    EXIT WHEN c1%NOTFOUND OR i > 2;
    DBMS_OUTPUT.PUT_LINE(i || v_employees.last_name);
  END LOOP;
  CLOSE c1;
END;
> 1King
> 2Kochhar
## 4-28 WHILE LOOP
DECLARE
  done BOOLEAN := FALSE;
BEGIN
  WHILE done LOOP
    DBMS_OUTPUT.PUT_LINE('This line does not print.');
    done := TRUE;
  END LOOP;
  WHILE NOT done LOOP
    DBMS_OUTPUT.PUT_LINE('Hello, world!');
    done := TRUE;
  END LOOP;
END;
> Hello, world!
## 4-29 GOTO
DECLARE
  p VARCHAR2(30);
  n PLS_INTEGER := 37;
BEGIN
  FOR j IN 2..ROUND(SQRT(n)) LOOP
    IF MOD(n, j) = 0 THEN
      p := ' is not a prime number';
      GOTO print_now;
    END IF;
  END LOOP;
  p := ' is a prime number';
  <<print_now>>
  DBMS_OUTPUT.PUT_LINE(TO_CHAR(n) || p);
END;
! GOTO
## 4-34 the NULL statement
PROCEDURE award_bonus(emp_id NUMBER) AS BEGIN NULL; END award_bonus;
/
$ CALL hr.award_bonus(1)
## 5-1 associative array indexed by string
DECLARE
  TYPE population IS TABLE OF NUMBER INDEX BY VARCHAR2(64);
  city_population population;
BEGIN
  city_population('Smallville') := 2000;
  DBMS_OUTPUT.PUT_LINE(city_population('Smallville'));
END;
! type
## 5-5 nested table with a constructor
DECLARE
  TYPE roster IS TABLE OF VARCHAR2(15);
  names roster := roster('D Caruso', 'J Hamil');
BEGIN
  FOR i IN names.FIRST .. names.LAST LOOP
    DBMS_OUTPUT.PUT_LINE(names(i));
  END LOOP;
END;
> D Caruso
> J Hamil
## 5-34 a record type
DECLARE
  TYPE dept_rec IS RECORD (dept_id NUMBER(4) NOT NULL := 10, dept_name VARCHAR2(30) NOT NULL := 'Administration');
  rec1 dept_rec;
BEGIN
  DBMS_OUTPUT.PUT_LINE('dept_id: ' || rec1.dept_id);
END;
! NOT NULL
## 5-37 %ROWTYPE variable for a full row
DECLARE
  dept_rec departments%ROWTYPE;
BEGIN
  dept_rec.department_id := 10;
  dept_rec.department_name := 'Administration';
  dept_rec.manager_id := 200;
  DBMS_OUTPUT.PUT_LINE(dept_rec.department_id || dept_rec.department_name || dept_rec.manager_id || dept_rec.location_id);
END;
> 10Administration200
## 5-38 %ROWTYPE of a cursor
DECLARE
  CURSOR c IS SELECT first_name, last_name FROM employees WHERE employee_id = 103;
  friend c%ROWTYPE;
BEGIN
  friend.first_name := 'John';
  friend.last_name := 'Smith';
  DBMS_OUTPUT.PUT_LINE('Friend: ' || friend.first_name || ' ' || friend.last_name);
END;
> Friend: John Smith
## 5-43 assigning one record to another
DECLARE
  a departments%ROWTYPE;
  b departments%ROWTYPE;
BEGIN
  SELECT * INTO a FROM departments WHERE department_id = 20;
  b := a;
  DBMS_OUTPUT.PUT_LINE(b.department_name);
END;
> Marketing
## 5-46 inserting a record
DECLARE
  d dept_temp%ROWTYPE;
BEGIN
  d.department_id := 300;
  d.department_name := 'Tests';
  INSERT INTO dept_temp VALUES d;
END;
/
$ CALL hr.p()
$ SELECT department_id || department_name FROM hr.dept_temp
= 300Tests
## 5-48 updating a row with a record
DECLARE
  d departments%ROWTYPE;
BEGIN
  SELECT * INTO d FROM departments WHERE department_id = 20;
  d.department_name := 'Market';
  UPDATE departments SET ROW = d WHERE department_id = 20;
END;
/
$ CALL hr.p()
$ SELECT department_name || manager_id FROM hr.departments WHERE department_id = 20
= Market201
## 6-1 static SQL statements
DECLARE
  emp_id employees.employee_id%TYPE := 299;
  emp_first_name employees.first_name%TYPE := 'Bob';
  emp_last_name employees.last_name%TYPE := 'Henry';
BEGIN
  INSERT INTO emp_temp (employee_id, first_name, last_name) VALUES (emp_id, emp_first_name, emp_last_name);
  UPDATE emp_temp SET first_name = 'Robert' WHERE employee_id = emp_id;
  DELETE FROM emp_temp WHERE employee_id = emp_id
    RETURNING first_name, last_name INTO emp_first_name, emp_last_name;
  DBMS_OUTPUT.PUT_LINE(emp_first_name || ' ' || emp_last_name);
END;
> Robert Henry
## 6-2 CURRVAL and NEXTVAL
DECLARE
  seq_value NUMBER;
BEGIN
  INSERT INTO emp_temp (employee_id, last_name) VALUES (employees_seq.NEXTVAL, 'Lynette');
  seq_value := employees_seq.CURRVAL;
  DBMS_OUTPUT.PUT_LINE('Initial sequence value: ' || TO_CHAR(seq_value));
END;
> Initial sequence value: 1
## 6-3 SQL%FOUND
PROCEDURE p(dept_no NUMBER) AUTHID CURRENT_USER AS
BEGIN
  DELETE FROM dept_temp WHERE department_id = dept_no;
  IF SQL%FOUND THEN
    DBMS_OUTPUT.PUT_LINE('Delete succeeded for department number ' || dept_no);
  ELSE
    DBMS_OUTPUT.PUT_LINE('No department number ' || dept_no);
  END IF;
END;
/
$ INSERT INTO hr.dept_temp (department_id) VALUES (270)
$ CALL hr.p(270)
$ CALL hr.p(400)
> Delete succeeded for department number 270
> No department number 400
## 6-4 SQL%ROWCOUNT
DECLARE
  mgr_no NUMBER(6) := 103;
BEGIN
  DELETE FROM employees WHERE manager_id = mgr_no;
  DBMS_OUTPUT.PUT_LINE('Number of employees deleted: ' || TO_CHAR(SQL%ROWCOUNT));
END;
> Number of employees deleted: 4
## 6-5 explicit cursors with and without return types
DECLARE
  CURSOR c1 RETURN departments%ROWTYPE;
  CURSOR c2 IS SELECT employee_id, salary FROM employees WHERE salary > 20000;
  CURSOR c1 RETURN departments%ROWTYPE IS SELECT * FROM departments WHERE department_id = 110;
BEGIN
  FOR d IN c1 LOOP DBMS_OUTPUT.PUT_LINE(d.department_name); END LOOP;
END;
> Accounting
## 6-6 FETCH statements inside LOOP statements
DECLARE
  CURSOR c1 IS SELECT last_name, job_id FROM employees WHERE job_id LIKE 'SA\_M%' ESCAPE '\' ORDER BY last_name;
  v_lastname employees.last_name%TYPE;
  v_jobid employees.job_id%TYPE;
BEGIN
  OPEN c1;
  LOOP
    FETCH c1 INTO v_lastname, v_jobid;
    EXIT WHEN c1%NOTFOUND;
    DBMS_OUTPUT.PUT_LINE(RPAD(v_lastname, 10, ' ') || v_jobid);
  END LOOP;
  CLOSE c1;
END;
> Cambrault SA_MAN
> Errazuriz SA_MAN
> Partners  SA_MAN
> Russell   SA_MAN
> Zlotkey   SA_MAN
## 6-8 a variable in the query of a cursor is evaluated at OPEN
DECLARE
  sal employees.salary%TYPE;
  sal_multiple employees.salary%TYPE;
  factor INTEGER := 2;
  CURSOR c1 IS SELECT salary, salary*factor FROM employees WHERE job_id LIKE 'PU_M%';
BEGIN
  OPEN c1;
  factor := 3;
  FETCH c1 INTO sal, sal_multiple;
  DBMS_OUTPUT.PUT_LINE(sal || ' ' || sal_multiple);
  CLOSE c1;
END;
> 11000 22000
## 6-10 a virtual column needs an alias
DECLARE
  CURSOR c1 IS SELECT employee_id, (salary * .05) raise FROM employees WHERE job_id LIKE '%_MAN' AND salary > 13000 ORDER BY employee_id;
  emp_rec c1%ROWTYPE;
BEGIN
  OPEN c1;
  LOOP
    FETCH c1 INTO emp_rec;
    EXIT WHEN c1%NOTFOUND;
    DBMS_OUTPUT.PUT_LINE('Raise for employee #' || emp_rec.employee_id || ' is $' || emp_rec.raise);
  END LOOP;
  CLOSE c1;
END;
> Raise for employee #145 is $700
> Raise for employee #146 is $675
## 6-12 a cursor with parameters and a default
DECLARE
  CURSOR c (job VARCHAR2, max_sal NUMBER DEFAULT 10000) IS
    SELECT last_name, (salary - max_sal) overpayment FROM employees WHERE job_id = job AND salary > max_sal ORDER BY salary DESC;
BEGIN
  FOR r IN c('SA_MAN', 12500) LOOP DBMS_OUTPUT.PUT_LINE(r.last_name || r.overpayment); END LOOP;
  FOR r IN c('PU_MAN') LOOP DBMS_OUTPUT.PUT_LINE(r.last_name || r.overpayment); END LOOP;
END;
> Russell1500
> Partners1000
> Raphaely1000
## 6-14 %ISOPEN
DECLARE
  CURSOR c1 IS SELECT last_name FROM employees;
BEGIN
  IF NOT c1%ISOPEN THEN OPEN c1; END IF;
  IF c1%ISOPEN THEN CLOSE c1; DBMS_OUTPUT.PUT_LINE('closed'); END IF;
END;
> closed
## 6-17 %ROWCOUNT of a cursor
DECLARE
  CURSOR c1 IS SELECT last_name FROM employees WHERE ROWNUM < 11 ORDER BY last_name;
  name employees.last_name%TYPE;
BEGIN
  OPEN c1;
  LOOP
    FETCH c1 INTO name;
    EXIT WHEN c1%NOTFOUND OR c1%NOTFOUND IS NULL;
    IF c1%ROWCOUNT = 5 THEN DBMS_OUTPUT.PUT_LINE('--- Fetched 5th row ---'); END IF;
  END LOOP;
  DBMS_OUTPUT.PUT_LINE(c1%ROWCOUNT);
  CLOSE c1;
END;
> --- Fetched 5th row ---
> 10
## 6-18 implicit cursor FOR LOOP
BEGIN
  FOR item IN (SELECT last_name, job_id FROM employees WHERE job_id LIKE '%CLERK%' AND manager_id > 113 ORDER BY last_name) LOOP
    DBMS_OUTPUT.PUT_LINE('Name = ' || item.last_name || ', Job = ' || item.job_id);
  END LOOP;
END;
> Name = Baida, Job = PU_CLERK
> Name = Colmenares, Job = PU_CLERK
> Name = Himuro, Job = PU_CLERK
> Name = Khoo, Job = PU_CLERK
> Name = Tobias, Job = PU_CLERK
## 6-21 aliases of expressions in a loop
BEGIN
  FOR item IN (SELECT first_name || ' ' || last_name AS full_name, salary * 10 AS dream_salary FROM employees WHERE ROWNUM <= 5 ORDER BY dream_salary DESC, last_name ASC) LOOP
    DBMS_OUTPUT.PUT_LINE(item.full_name || ' dreams of making ' || item.dream_salary);
    EXIT;
  END LOOP;
END;
> Steven King dreams of making 240000
## 6-22 a subquery in the FROM clause of a cursor
DECLARE
  CURSOR c1 IS SELECT t1.department_id, department_name, staff FROM departments t1,
    (SELECT department_id, COUNT(*) AS staff FROM employees GROUP BY department_id) t2
    WHERE (t1.department_id = t2.department_id) AND staff >= 5 ORDER BY staff, t1.department_id;
BEGIN
  FOR dept IN c1 LOOP
    DBMS_OUTPUT.PUT_LINE('Department = ' || dept.department_name || ', staff = ' || dept.staff);
  END LOOP;
END;
> Department = IT, staff = 5
> Department = Sales, staff = 5
> Department = Purchasing, staff = 6
> Department = Finance, staff = 6
## 6-25 OPEN FOR with a cursor variable
PROCEDURE open_emp(c IN OUT SYS_REFCURSOR) IS
BEGIN
  OPEN c FOR SELECT last_name FROM employees WHERE employee_id = 100;
END;
! SYS_REFCURSOR
## 6-36 a transaction with COMMIT and ROLLBACK
PROCEDURE trans_p AS
BEGIN
  UPDATE employees SET salary = 1 WHERE employee_id = 100;
  COMMIT WRITE BATCH NOWAIT;
END;
! COMMIT
## 6-39 ROLLBACK to a savepoint
PROCEDURE sp IS
BEGIN
  SAVEPOINT do_insert;
  INSERT INTO emp_temp (employee_id) VALUES (1);
EXCEPTION
  WHEN DUP_VAL_ON_INDEX THEN ROLLBACK TO do_insert;
END;
! SAVEPOINT
## 6-42 SET TRANSACTION READ ONLY
PROCEDURE ro IS BEGIN SET TRANSACTION READ ONLY NAME 'Daily_sales'; NULL; END;
! *
## 6-43 FETCH with a FOR UPDATE cursor
DECLARE
  my_emp_id NUMBER(6);
  CURSOR c1 IS SELECT employee_id FROM employees WHERE employee_id = 100 FOR UPDATE;
BEGIN
  OPEN c1;
  LOOP
    FETCH c1 INTO my_emp_id;
    EXIT WHEN c1%NOTFOUND;
    UPDATE employees SET salary = salary * 1.05 WHERE employee_id = my_emp_id;
    DBMS_OUTPUT.PUT_LINE(SQL%ROWCOUNT);
  END LOOP;
  CLOSE c1;
END;
> 1
## 6-44 WHERE CURRENT OF
DECLARE
  CURSOR c1 IS SELECT employee_id, salary FROM employees WHERE department_id = 20 FOR UPDATE OF salary;
  r c1%ROWTYPE;
BEGIN
  OPEN c1;
  LOOP
    FETCH c1 INTO r;
    EXIT WHEN c1%NOTFOUND;
    UPDATE employees SET salary = r.salary + 1 WHERE CURRENT OF c1;
  END LOOP;
  CLOSE c1;
END;
/
$ CALL hr.p()
! CURRENT OF
## 6-46 an autonomous function
FUNCTION raise_salary(emp_id NUMBER, sal_raise NUMBER) RETURN NUMBER IS
  PRAGMA AUTONOMOUS_TRANSACTION;
  new_sal NUMBER(8,2);
BEGIN
  UPDATE employees SET salary = salary + sal_raise WHERE employee_id = emp_id;
  COMMIT;
  RETURN new_sal;
END;
! AUTONOMOUS_TRANSACTION
## 7-1 invoking a subprogram from a dynamic block
PROCEDURE d(a IN OUT NUMBER) IS
BEGIN
  EXECUTE IMMEDIATE 'BEGIN create_dept(:a); END;' USING IN OUT a;
END;
! EXECUTE IMMEDIATE
## 7-2 dynamic SQL with a placeholder
DECLARE
  n NUMBER;
BEGIN
  EXECUTE IMMEDIATE 'SELECT COUNT(*) FROM employees WHERE department_id = :d' INTO n USING 30;
  DBMS_OUTPUT.PUT_LINE(n);
END;
> 6
## 7-6 EXECUTE IMMEDIATE of DDL
PROCEDURE make IS BEGIN EXECUTE IMMEDIATE 'CREATE TABLE x (a NUMBER)'; END;
! EXECUTE IMMEDIATE
## 7-16 dynamic SQL of a concatenated text
PROCEDURE get_record(user_name VARCHAR2, rec OUT VARCHAR2) IS
  query VARCHAR2(4000);
BEGIN
  query := 'SELECT value FROM secret_records WHERE user_name=''' || user_name || '''';
  EXECUTE IMMEDIATE query INTO rec;
END;
! EXECUTE IMMEDIATE
## 8-1 a nested procedure
DECLARE
  first_name employees.first_name%TYPE := 'john';
  PROCEDURE show(name VARCHAR2) IS
  BEGIN
    DBMS_OUTPUT.PUT_LINE(UPPER(name));
  END show;
BEGIN
  show(first_name);
END;
! nested procedure
## 8-2 a function
FUNCTION square(original NUMBER) RETURN NUMBER AS
  original_squared NUMBER;
BEGIN
  original_squared := original * original;
  RETURN original_squared;
END;
/
$ SELECT hr.square(100)
= 10000
## 8-5 a RETURN without a value leaves the procedure
PROCEDURE p(n NUMBER) IS
BEGIN
  IF n = 0 THEN RETURN; END IF;
  DBMS_OUTPUT.PUT_LINE(n);
END;
/
$ CALL hr.p(0)
$ CALL hr.p(1)
> 1
## 8-6 a function with several RETURN statements
FUNCTION f(n INTEGER) RETURN INTEGER IS
BEGIN
  IF n = 0 THEN RETURN 1; ELSIF n = 1 THEN RETURN n; ELSE RETURN n*n; END IF;
END;
/
$ SELECT hr.f(0) || ',' || hr.f(1) || ',' || hr.f(3)
= 1,1,9
## 8-10 a parameter without size, and one of a constrained subtype
PROCEDURE p(x VARCHAR2) IS
BEGIN
  DBMS_OUTPUT.PUT_LINE(x);
END;
/
$ CALL hr.p('abcdefghijkl')
> abcdefghijkl
## 8-13 values of OUT and IN OUT parameters
PROCEDURE modes(a PLS_INTEGER, b IN PLS_INTEGER, c OUT PLS_INTEGER, d IN OUT BINARY_FLOAT) IS
BEGIN
  DBMS_OUTPUT.PUT_LINE(NVL(TO_CHAR(c), 'NULL'));
  c := a + 10;
  d := 10 / b;
END;
/
DECLARE
  aa PLS_INTEGER := 1;
  bb PLS_INTEGER := 2;
  cc PLS_INTEGER := 3;
  dd BINARY_FLOAT := 4;
BEGIN
  modes(aa, bb, cc, dd);
  DBMS_OUTPUT.PUT_LINE(aa || bb || cc);
END;
> NULL
> 1211
## 8-17 an exception leaves OUT parameters unchanged
PROCEDURE j(p OUT VARCHAR2) IS
BEGIN
  p := 'changed';
  RAISE_APPLICATION_ERROR(-20000, 'fails');
END;
/
DECLARE
  v VARCHAR2(10) := 'before';
BEGIN
  BEGIN
    j(v);
  EXCEPTION WHEN OTHERS THEN NULL;
  END;
  DBMS_OUTPUT.PUT_LINE(v);
END;
! handler
## 8-18 default parameter values
PROCEDURE raise_salary(emp_id NUMBER, amount NUMBER DEFAULT 100, extra NUMBER DEFAULT 50) IS
BEGIN
  UPDATE employees SET salary = salary + amount + extra WHERE employee_id = emp_id;
END raise_salary;
/
DECLARE
BEGIN
  raise_salary(120);
  raise_salary(100, extra => 25);
  raise_salary(101, 300);
END;
/
$ CALL hr.p()
$ SELECT string_agg(salary::text, ',' ORDER BY employee_id) FROM hr.employees WHERE employee_id IN (100, 101)
= 24125.00,17350.00
## 8-21 positional, named and mixed notation of a function
FUNCTION compute_bonus(emp_id NUMBER, bonus NUMBER) RETURN NUMBER IS
  emp_sal NUMBER;
BEGIN
  SELECT salary INTO emp_sal FROM employees WHERE employee_id = emp_id;
  RETURN emp_sal + bonus;
END compute_bonus;
/
BEGIN
  DBMS_OUTPUT.PUT_LINE(compute_bonus(120 - 20, 50));
  DBMS_OUTPUT.PUT_LINE(compute_bonus(bonus => 50, emp_id => 100));
  DBMS_OUTPUT.PUT_LINE(compute_bonus(100, bonus => 50));
END;
> 24050
> 24050
> 24050
## 8-27 overloaded procedures of a package
PACKAGE over_pkg IS
  PROCEDURE s(p NUMBER);
  PROCEDURE s(p VARCHAR2);
END;
/
PACKAGE BODY over_pkg IS
  PROCEDURE s(p NUMBER) IS BEGIN DBMS_OUTPUT.PUT_LINE('number'); END;
  PROCEDURE s(p VARCHAR2) IS BEGIN DBMS_OUTPUT.PUT_LINE('text'); END;
END;
! overloaded
## 8-34 recursive function
FUNCTION factorial(n POSITIVE) RETURN POSITIVE IS
BEGIN
  IF n = 1 THEN RETURN n; ELSE RETURN n * factorial(n-1); END IF;
END;
/
! POSITIVE
## 8-35 recursive function of Fibonacci numbers
FUNCTION fibonacci(n PLS_INTEGER) RETURN PLS_INTEGER IS
  fib_1 PLS_INTEGER := 0;
  fib_2 PLS_INTEGER := 1;
BEGIN
  IF n = 1 THEN RETURN fib_1;
  ELSIF n = 2 THEN RETURN fib_2;
  ELSE RETURN fibonacci(n-2) + fibonacci(n-1);
  END IF;
END;
/
$ SELECT hr.fibonacci(10)
= 34
## 8-36 a result-cached function
FUNCTION get_dept_name(id NUMBER) RETURN VARCHAR2 RESULT_CACHE RELIES_ON (departments) IS
  n departments.department_name%TYPE;
BEGIN
  SELECT department_name INTO n FROM departments WHERE department_id = id;
  RETURN n;
END;
/
$ SELECT hr.get_dept_name(10)
= Administration
## 9-1 INSERTING, UPDATING and DELETING
TRIGGER t BEFORE INSERT OR UPDATE OF salary, department_id OR DELETE ON employees
BEGIN
  CASE
    WHEN INSERTING THEN DBMS_OUTPUT.PUT_LINE('Inserting');
    WHEN UPDATING('salary') THEN DBMS_OUTPUT.PUT_LINE('Updating salary');
    WHEN UPDATING('department_id') THEN DBMS_OUTPUT.PUT_LINE('Updating department ID');
    WHEN DELETING THEN DBMS_OUTPUT.PUT_LINE('Deleting');
  END CASE;
END;
! UPDATING
## 9-2 an INSTEAD OF trigger
VIEW emp_view AS SELECT e.employee_id, e.last_name, d.department_id, d.department_name FROM employees e, departments d WHERE e.department_id = d.department_id
/
TRIGGER emp_view_insert INSTEAD OF INSERT ON emp_view
DECLARE
  duplicate_info EXCEPTION;
  PRAGMA EXCEPTION_INIT(duplicate_info, -00001);
BEGIN
  INSERT INTO dept_temp (department_id, department_name) VALUES (:NEW.department_id, :NEW.department_name);
  INSERT INTO emp_temp (employee_id, last_name) VALUES (:NEW.employee_id, :NEW.last_name);
EXCEPTION
  WHEN duplicate_info THEN
    RAISE_APPLICATION_ERROR(num => -20107, msg => 'Duplicate customer or order ID');
END;
/
$ INSERT INTO hr.emp_view VALUES (1, 'A', 2, 'B')
$ SELECT last_name || department_name FROM hr.emp_temp, hr.dept_temp
= AB
## 9-5 a compound trigger that collects rows
TRIGGER maintain_salaries FOR UPDATE OF salary ON employees COMPOUND TRIGGER
  threshold CONSTANT SIMPLE_INTEGER := 7;
  TYPE salaries_t IS TABLE OF emp_log%ROWTYPE INDEX BY SIMPLE_INTEGER;
  salaries salaries_t;
  AFTER EACH ROW IS
  BEGIN
    NULL;
  END AFTER EACH ROW;
  AFTER STATEMENT IS
  BEGIN
    NULL;
  END AFTER STATEMENT;
END maintain_salaries;
! trigger
## 9-7 a trigger monitors values
TRIGGER t_log AFTER UPDATE OF salary ON employees FOR EACH ROW
BEGIN
  INSERT INTO emp_log (emp_id, log_date, new_salary, action) VALUES (:NEW.employee_id, SYSDATE, :NEW.salary, 'New Salary');
END;
/
$ UPDATE hr.employees SET salary = salary + 1000.0 WHERE department_id = 20
$ SELECT string_agg(emp_id || ' ' || new_salary || action, ',' ORDER BY emp_id) FROM hr.emp_log
= 201 14000.00New Salary,202 7000.00New Salary
## 9-8 a conditional trigger
TRIGGER print_salary_changes BEFORE DELETE OR INSERT OR UPDATE ON employees FOR EACH ROW WHEN (NEW.job_id <> 'AD_PRES')
DECLARE
  sal_diff NUMBER;
BEGIN
  sal_diff := :NEW.salary - :OLD.salary;
  DBMS_OUTPUT.PUT(:NEW.last_name || ': ');
  DBMS_OUTPUT.PUT('Old salary = ' || :OLD.salary || ', ');
  DBMS_OUTPUT.PUT_LINE('Difference: ' || sal_diff);
END;
/
$ UPDATE hr.employees SET salary = salary * 1.05 WHERE employee_id IN (100, 202)
! DBMS_OUTPUT.PUT
## 9-10 correlation names by REFERENCING
TRIGGER print_changes BEFORE UPDATE ON dept_temp REFERENCING OLD AS o NEW AS n FOR EACH ROW
BEGIN
  DBMS_OUTPUT.PUT_LINE(:o.department_name || '->' || :n.department_name);
END;
/
$ INSERT INTO hr.dept_temp (department_id, department_name) VALUES (1, 'a')
$ UPDATE hr.dept_temp SET department_name = 'b'
> a->b
## 9-14 a foreign key trigger with its own exceptions
TRIGGER emp_dept_check BEFORE INSERT OR UPDATE OF department_id ON emp_temp FOR EACH ROW WHEN (NEW.department_id IS NOT NULL)
DECLARE
  dummy INTEGER;
  invalid_department EXCEPTION;
  valid_department EXCEPTION;
  CURSOR dummy_cursor (dn NUMBER) IS SELECT department_id FROM departments WHERE department_id = dn FOR UPDATE OF department_id;
BEGIN
  OPEN dummy_cursor (:NEW.department_id);
  FETCH dummy_cursor INTO dummy;
  IF dummy_cursor%NOTFOUND THEN RAISE invalid_department; ELSE RAISE valid_department; END IF;
  CLOSE dummy_cursor;
EXCEPTION
  WHEN invalid_department THEN
    CLOSE dummy_cursor;
    RAISE_APPLICATION_ERROR(-20000, 'Invalid Department' || ' Number' || TO_CHAR(:NEW.department_id));
  WHEN valid_department THEN
    CLOSE dummy_cursor;
END;
! rolls back the block's changes and row locks
## 9-18 restrict changes to business hours
TRIGGER employee_permit BEFORE INSERT OR DELETE OR UPDATE ON dept_temp
DECLARE
  not_on_weekends EXCEPTION;
BEGIN
  IF TO_CHAR(DATE '2026-11-28', 'DY') = 'SAT' THEN RAISE not_on_weekends; END IF;
EXCEPTION
  WHEN not_on_weekends THEN RAISE_APPLICATION_ERROR(-20324, 'Might not change employee table during the weekend');
END;
/
$ INSERT INTO hr.dept_temp (department_id) VALUES (1)
? ORA-20324: Might not change employee table during the weekend
## 9-21 derived columns in a trigger
TRIGGER derived BEFORE INSERT OR UPDATE OF last_name ON emp_temp FOR EACH ROW
BEGIN
  :NEW.first_name := UPPER(:NEW.last_name);
  :NEW.job_id := SUBSTR(:NEW.last_name, 1, 3);
END;
/
$ INSERT INTO hr.emp_temp (employee_id, last_name) VALUES (1, 'Smith')
$ SELECT first_name || job_id FROM hr.emp_temp
= SMITHSmi
## 9-27 a statement trigger that logs
TRIGGER log_deletions AFTER DELETE ON emp_temp
DECLARE
  n INTEGER;
BEGIN
  SELECT COUNT(*) INTO n FROM emp_temp;
  INSERT INTO emp_log (emp_id, action) VALUES (n, 'deleted');
END;
/
$ INSERT INTO hr.emp_temp (employee_id) VALUES (1), (2), (3)
$ DELETE FROM hr.emp_temp WHERE employee_id < 3
$ DELETE FROM hr.emp_temp WHERE employee_id > 3
$ SELECT string_agg(emp_id || action, ',') FROM hr.emp_log
= 1deleted,1deleted
## 9-29 a trigger that calls a stored procedure
PROCEDURE check_sal(new_sal NUMBER) IS
BEGIN
  IF new_sal > 20000 THEN RAISE_APPLICATION_ERROR(-20225, 'Salary out of range'); END IF;
END;
/
TRIGGER salary_check BEFORE INSERT OR UPDATE OF salary ON emp_temp FOR EACH ROW CALL check_sal(:NEW.salary)
/
$ INSERT INTO hr.emp_temp (employee_id, salary) VALUES (1, 25000)
? ORA-20225: Salary out of range
## 9-31 a system trigger
TRIGGER log_errors AFTER SERVERERROR ON DATABASE
BEGIN
  NULL;
END;
! *
## 10-1 a simple package specification with a body
PACKAGE emp_admin AS
  FUNCTION hire(last_name VARCHAR2, salary NUMBER) RETURN NUMBER;
  PROCEDURE fire(emp_id NUMBER);
  PROCEDURE raise_salary(emp_id NUMBER, amount NUMBER);
END emp_admin;
/
PACKAGE BODY emp_admin AS
  FUNCTION hire(last_name VARCHAR2, salary NUMBER) RETURN NUMBER IS
    new_id NUMBER;
  BEGIN
    new_id := employees_seq.NEXTVAL;
    INSERT INTO emp_temp (employee_id, last_name, salary) VALUES (new_id, last_name, salary);
    RETURN new_id;
  END hire;
  PROCEDURE fire(emp_id NUMBER) IS
  BEGIN
    DELETE FROM emp_temp WHERE employee_id = emp_id;
  END fire;
  PROCEDURE raise_salary(emp_id NUMBER, amount NUMBER) IS
  BEGIN
    UPDATE emp_temp SET salary = salary + amount WHERE employee_id = emp_id;
  EXCEPTION
    WHEN OTHERS THEN RAISE_APPLICATION_ERROR(-20001, 'no raise');
  END raise_salary;
END emp_admin;
/
$ SELECT emp_admin.hire('Belden', 1000)
$ CALL emp_admin.raise_salary(1, 50)
$ SELECT last_name || salary FROM hr.emp_temp
= Belden1050.00
## 10-3 a package with a public variable
PACKAGE bank AS
  credit_limit NUMBER := 5000;
  PROCEDURE show;
END bank;
/
PACKAGE BODY bank AS
  PROCEDURE show IS BEGIN DBMS_OUTPUT.PUT_LINE(credit_limit); END;
END bank;
! variable CREDIT_LIMIT
## 10-7 a package with constants and private routines
PACKAGE tax AS
  c_rate CONSTANT NUMBER := 0.19;
  FUNCTION gross(net NUMBER) RETURN NUMBER;
END tax;
/
PACKAGE BODY tax AS
  FUNCTION of_tax(net NUMBER) RETURN NUMBER IS BEGIN RETURN net * c_rate; END;
  FUNCTION gross(net NUMBER) RETURN NUMBER IS BEGIN RETURN net + of_tax(net); END;
END tax;
/
$ SELECT tax.gross(100)
= 119.00
## 11-1 a handler of TOO_MANY_ROWS, NO_DATA_FOUND and OTHERS
PROCEDURE select_item(t_column VARCHAR2) AUTHID DEFINER IS
  temp VARCHAR2(30);
BEGIN
  temp := t_column;
  SELECT last_name INTO temp FROM employees WHERE job_id = t_column;
EXCEPTION
  WHEN NO_DATA_FOUND THEN DBMS_OUTPUT.PUT_LINE('No Data found for SELECT on ' || temp);
  WHEN TOO_MANY_ROWS THEN DBMS_OUTPUT.PUT_LINE('Too many');
  WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('Unexpected error'); RAISE;
END;
/
$ CALL hr.select_item('AD_PRES')
$ CALL hr.select_item('nobody')
$ CALL hr.select_item('IT_PROG')
> No Data found for SELECT on nobody
> Too many
## 11-2 a location variable
DECLARE
  loc NUMBER := 1;
  n NUMBER;
BEGIN
  SELECT employee_id INTO n FROM employees WHERE last_name = 'King';
  loc := 2;
  SELECT employee_id INTO n FROM employees WHERE last_name = 'nobody';
EXCEPTION
  WHEN NO_DATA_FOUND THEN DBMS_OUTPUT.PUT_LINE('Nothing in query # ' || loc);
END;
> Nothing in query # 2
## 11-3 naming an internally defined exception
DECLARE
  deadlock_detected EXCEPTION;
  PRAGMA EXCEPTION_INIT(deadlock_detected, -60);
BEGIN
  DBMS_OUTPUT.PUT_LINE('ok');
EXCEPTION
  WHEN deadlock_detected THEN NULL;
END;
> ok
## 11-6 anonymous block handles ZERO_DIVIDE
DECLARE
  stock_price NUMBER := 9.73;
  net_earnings NUMBER := 0;
  pe_ratio NUMBER;
BEGIN
  pe_ratio := stock_price / net_earnings;
  DBMS_OUTPUT.PUT_LINE('Price/earnings ratio = ' || pe_ratio);
EXCEPTION
  WHEN ZERO_DIVIDE THEN DBMS_OUTPUT.PUT_LINE('Company had zero earnings.');
    pe_ratio := NULL;
END;
> Company had zero earnings.
## 11-9 declaring, raising and handling a user-defined exception
PROCEDURE account_status(due_date DATE, today DATE) IS
  past_due EXCEPTION;
BEGIN
  IF due_date < today THEN RAISE past_due; END IF;
EXCEPTION
  WHEN past_due THEN DBMS_OUTPUT.PUT_LINE('Account past due.');
END;
/
$ CALL hr.account_status('2010-07-01', '2010-07-09')
> Account past due.
## 11-10 raising a predefined exception
PROCEDURE p(n NUMBER) IS
  default_number NUMBER := 0;
BEGIN
  IF n < 0 THEN RAISE INVALID_NUMBER; ELSE INSERT INTO emp_log (emp_id) VALUES (TO_NUMBER('100.00', '9G999')); END IF;
EXCEPTION
  WHEN INVALID_NUMBER THEN
    DBMS_OUTPUT.PUT_LINE('Substituting default value for invalid number.');
    INSERT INTO emp_log (emp_id) VALUES (default_number);
END;
/
$ CALL hr.p(-1)
! 9G999
## 11-11 a handler raises the exception again
DECLARE
  salary_too_high EXCEPTION;
  current_salary NUMBER := 20000;
  max_salary NUMBER := 10000;
  erroneous_salary NUMBER;
BEGIN
  BEGIN
    IF current_salary > max_salary THEN RAISE salary_too_high; END IF;
  EXCEPTION
    WHEN salary_too_high THEN
      erroneous_salary := current_salary;
      DBMS_OUTPUT.PUT_LINE('Salary ' || erroneous_salary || ' is out of range.');
      RAISE;
  END;
EXCEPTION
  WHEN salary_too_high THEN
    current_salary := max_salary;
    DBMS_OUTPUT.PUT_LINE('Revising salary from ' || erroneous_salary || ' to ' || current_salary || '.');
END;
> Salary 20000 is out of range.
> Revising salary from 20000 to 10000.
## 11-12 RAISE_APPLICATION_ERROR with EXCEPTION_INIT
PROCEDURE account_status(due_date DATE, today DATE) AUTHID DEFINER IS
BEGIN
  IF due_date < today THEN RAISE_APPLICATION_ERROR(-20000, 'Account past due.'); END IF;
END;
/
DECLARE
  past_due EXCEPTION;
  PRAGMA EXCEPTION_INIT(past_due, -20000);
BEGIN
  account_status(DATE '2010-07-01', DATE '2010-07-09');
EXCEPTION
  WHEN past_due THEN DBMS_OUTPUT.PUT_LINE(TO_CHAR(SQLERRM(-20000)));
END;
! *
## 11-13 an exception that propagates beyond its scope
PROCEDURE p IS
BEGIN
  DECLARE
    past_due EXCEPTION;
    due_date DATE := DATE '2010-07-01';
    todays_date DATE := DATE '2010-07-09';
  BEGIN
    IF due_date < todays_date THEN RAISE past_due; END IF;
  END;
EXCEPTION
  WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('ROLLBACK');
END;
> ROLLBACK
## 11-14 a redeclared exception is another exception
DECLARE
  past_due EXCEPTION;
BEGIN
  DECLARE
    past_due EXCEPTION;
  BEGIN
    RAISE past_due;
  END;
EXCEPTION
  WHEN past_due THEN DBMS_OUTPUT.PUT_LINE('Handling PAST_DUE exception.');
  WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('Could not recognize PAST_DUE_EXCEPTION in this scope.');
END;
> Could not recognize PAST_DUE_EXCEPTION in this scope.
## 11-15 an exception in a declaration is not handled by its block
DECLARE
BEGIN
  DECLARE
    credit_limit CONSTANT NUMBER(3) := 5000;
  BEGIN
    NULL;
  EXCEPTION
    WHEN VALUE_ERROR THEN DBMS_OUTPUT.PUT_LINE('in the block');
  END;
EXCEPTION
  WHEN VALUE_ERROR THEN DBMS_OUTPUT.PUT_LINE('Exception raised in declaration.');
END;
> Exception raised in declaration.
## 11-18 an exception in a handler
PROCEDURE print_reciprocal(n NUMBER) IS
BEGIN
  BEGIN
    DBMS_OUTPUT.PUT_LINE(1/n);
  EXCEPTION
    WHEN ZERO_DIVIDE THEN
      DBMS_OUTPUT.PUT_LINE('Error:' || 1/n || ' is undefined');
  END;
EXCEPTION
  WHEN ZERO_DIVIDE THEN DBMS_OUTPUT.PUT_LINE('1/0 is undefined.');
END;
/
$ CALL hr.print_reciprocal(0)
> 1/0 is undefined.
## 11-22 SQLCODE and SQLERRM
PROCEDURE p AUTHID DEFINER AS
  name employees.last_name%TYPE;
  v_code NUMBER;
  v_errm VARCHAR2(64);
BEGIN
  SELECT last_name INTO name FROM employees WHERE employee_id = -1;
EXCEPTION
  WHEN OTHERS THEN
    v_code := SQLCODE;
    v_errm := SUBSTR(SQLERRM, 1, 64);
    DBMS_OUTPUT.PUT_LINE('Error code ' || v_code);
    INSERT INTO errors (code, message) VALUES (v_code, v_errm);
END;
/
$ CALL hr.p()
$ SELECT code FROM hr.errors
> Error code 100
= 100
## 11-23 a handler that continues
DECLARE
  sal_calc NUMBER(8,2);
BEGIN
  INSERT INTO emp_temp (employee_id, salary) VALUES (301, 2500);
  BEGIN
    SELECT salary / 0 INTO sal_calc FROM emp_temp WHERE employee_id = 301;
  EXCEPTION
    WHEN ZERO_DIVIDE THEN sal_calc := 2500;
  END;
  INSERT INTO emp_temp (employee_id, salary) VALUES (302, sal_calc / 100);
END;
/
$ CALL hr.p()
$ SELECT string_agg(salary::text, ',' ORDER BY employee_id) FROM hr.emp_temp
= 2500.00,25.00
## 11-25 retrying a transaction after an exception
PROCEDURE p IS
  name VARCHAR2(20) := 'SMYTHE';
  suffix NUMBER := 1;
BEGIN
  FOR i IN 1..5 LOOP
    BEGIN
      SAVEPOINT start_transaction;
      INSERT INTO results (res_name) VALUES (name);
      EXIT;
    EXCEPTION
      WHEN DUP_VAL_ON_INDEX THEN
        ROLLBACK TO start_transaction;
        suffix := suffix + 1;
        name := name || TO_CHAR(suffix);
    END;
  END LOOP;
END;
! SAVEPOINT
## 12-9 FORALL with a DELETE
DECLARE
  TYPE num_list IS VARRAY(20) OF NUMBER;
  depts num_list := num_list(10, 30, 70);
BEGIN
  FORALL i IN depts.FIRST..depts.LAST
    DELETE FROM emp_temp WHERE department_id = depts(i);
END;
/
$ INSERT INTO hr.emp_temp (employee_id, department_id) SELECT employee_id, department_id FROM hr.employees
$ CALL hr.p()
$ SELECT COUNT(*) FROM hr.emp_temp
= 25
## 12-16 BULK COLLECT of a query into collections
DECLARE
  TYPE num_tab IS TABLE OF employees.employee_id%TYPE;
  TYPE name_tab IS TABLE OF employees.last_name%TYPE;
  enums num_tab;
  names name_tab;
BEGIN
  SELECT employee_id, last_name BULK COLLECT INTO enums, names FROM employees WHERE department_id = 60 ORDER BY employee_id;
  FOR i IN enums.FIRST .. enums.LAST LOOP
    DBMS_OUTPUT.PUT_LINE(enums(i) || names(i));
  END LOOP;
END;
> 103Hunold
> 104Ernst
> 105Austin
> 106Pataballa
> 107Lorentz
## 12-22 BULK COLLECT with LIMIT
DECLARE
  TYPE num_tab IS TABLE OF NUMBER INDEX BY PLS_INTEGER;
  CURSOR c1 IS SELECT employee_id FROM employees WHERE department_id = 100 ORDER BY employee_id;
  empids num_tab;
BEGIN
  OPEN c1;
  LOOP
    FETCH c1 BULK COLLECT INTO empids LIMIT 4;
    EXIT WHEN empids.COUNT = 0;
    FOR i IN 1..empids.COUNT LOOP
      DBMS_OUTPUT.PUT_LINE('Employee Id: ' || empids(i));
    END LOOP;
  END LOOP;
  CLOSE c1;
END;
> Employee Id: 108
> Employee Id: 109
> Employee Id: 110
> Employee Id: 111
> Employee Id: 112
> Employee Id: 113
## 12-25 RETURNING BULK COLLECT
DECLARE
  TYPE num_list IS TABLE OF employees.employee_id%TYPE;
  enums num_list;
BEGIN
  DELETE FROM employees WHERE department_id = 30 RETURNING employee_id BULK COLLECT INTO enums;
  DBMS_OUTPUT.PUT_LINE('Deleted ' || SQL%ROWCOUNT || ' rows:');
  FOR i IN enums.FIRST .. enums.LAST LOOP
    DBMS_OUTPUT.PUT_LINE('Employee #' || enums(i));
  END LOOP;
END;
> Deleted 6 rows:
> Employee #114
> Employee #115
> Employee #116
> Employee #117
> Employee #118
> Employee #119
## 12-30 a pipelined table function
FUNCTION f1(x NUMBER) RETURN numset_t PIPELINED IS
BEGIN
  FOR i IN 1..x LOOP PIPE ROW(i); END LOOP;
  RETURN;
END;
! *
## 13 RETURNING INTO of UPDATE
PROCEDURE p AUTHID DEFINER IS
  emp_id employees.employee_id%TYPE := 100;
  n employees.last_name%TYPE;
  s employees.salary%TYPE;
BEGIN
  UPDATE employees SET salary = salary * 1.1 WHERE employee_id = emp_id RETURNING last_name, salary INTO n, s;
  DBMS_OUTPUT.PUT_LINE('Just gave a raise to ' || n || ', who now makes ' || s);
END;
> Just gave a raise to King, who now makes 26400
## 13 RETURNING INTO a record field of INSERT
DECLARE
  new_id NUMBER;
BEGIN
  INSERT INTO emp_temp (employee_id, last_name) VALUES (employees_seq.NEXTVAL, 'x') RETURNING employee_id INTO new_id;
  DBMS_OUTPUT.PUT_LINE(new_id);
END;
> 1
## 13 MERGE in a procedure
PROCEDURE m IS
BEGIN
  MERGE INTO dept_temp d USING departments s ON (d.department_id = s.department_id)
    WHEN MATCHED THEN UPDATE SET d.department_name = s.department_name
    WHEN NOT MATCHED THEN INSERT (d.department_id, d.department_name) VALUES (s.department_id, s.department_name) WHERE (s.department_id < 30);
  DBMS_OUTPUT.PUT_LINE(SQL%ROWCOUNT);
END;
/
$ CALL hr.m()
> 2
## 13 UPDATE of several columns with one subquery
PROCEDURE u IS
BEGIN
  UPDATE employees a SET (salary, commission_pct) =
    (SELECT 1.1 * AVG(salary), 1.5 * AVG(commission_pct) FROM employees b WHERE a.department_id = b.department_id),
    job_id = 'X'
    WHERE department_id = 20;
END;
/
$ CALL hr.u()
$ SELECT salary FROM hr.employees WHERE employee_id = 201
= 10450
## 13 INSERT ALL
PROCEDURE ins IS
BEGIN
  INSERT ALL INTO emp_log (emp_id) VALUES (1) INTO emp_log (emp_id) VALUES (2) SELECT * FROM dual;
END;
! *
## 13 DEFAULT in INSERT
PROCEDURE ins IS
BEGIN
  INSERT INTO emp_log (emp_id, action) VALUES (1, DEFAULT);
END;
/
$ CALL hr.ins()
$ SELECT emp_id FROM hr.emp_log
= 1
## 13 LOCK TABLE
PROCEDURE l IS BEGIN LOCK TABLE employees IN EXCLUSIVE MODE NOWAIT; END;
! LOCK TABLE
## 13 SELECT with a WITH clause into variables
PROCEDURE w IS
  n NUMBER;
BEGIN
  WITH d AS (SELECT department_id, COUNT(*) c FROM employees GROUP BY department_id) SELECT MAX(c) INTO n FROM d;
  DBMS_OUTPUT.PUT_LINE(n);
END;
/
$ CALL hr.w()
> 6
## 14 a function called by a view
FUNCTION yearly(m NUMBER) RETURN NUMBER IS BEGIN RETURN m * 12; END;
/
VIEW pay AS SELECT last_name, yearly(salary) AS y FROM employees WHERE employee_id = 200
! PL/SQL routine
## 14 a procedure adds a row of history, like the sample schema's
PROCEDURE add_job_history(p_emp_id emp_log.emp_id%TYPE, p_start_date emp_log.log_date%TYPE, p_job_id emp_log.action%TYPE) IS
BEGIN
  INSERT INTO emp_log (emp_id, log_date, action) VALUES (p_emp_id, p_start_date, p_job_id);
END add_job_history;
/
TRIGGER update_job_history AFTER UPDATE OF job_id, department_id ON employees FOR EACH ROW
BEGIN
  add_job_history(:old.employee_id, :old.hire_date, :old.job_id);
END;
/
$ UPDATE hr.employees SET job_id = 'NEW' WHERE employee_id = 103
$ SELECT emp_id || action FROM hr.emp_log
= 103IT_PROG
## 14 a procedure guards a table by the hour, like the sample schema's
PROCEDURE secure_dml IS
BEGIN
  IF TO_CHAR(SYSDATE, 'HH24:MI') NOT BETWEEN '00:00' AND '24:00' OR TO_CHAR(SYSDATE, 'DY') IN ('NEVER') THEN
    RAISE_APPLICATION_ERROR(-20205, 'You may only make changes during normal office hours');
  END IF;
END secure_dml;
/
TRIGGER secure_employees BEFORE INSERT OR UPDATE OR DELETE ON dept_temp
BEGIN
  secure_dml;
END secure_employees;
/
$ INSERT INTO hr.dept_temp (department_id) VALUES (5)
$ SELECT department_id FROM hr.dept_temp
= 5
## 14 identity by sequence and trigger
TRIGGER bi_emp_temp BEFORE INSERT ON emp_temp FOR EACH ROW WHEN (new.employee_id IS NULL)
BEGIN
  SELECT employees_seq.NEXTVAL INTO :new.employee_id FROM dual;
END;
/
$ INSERT INTO hr.emp_temp (last_name) VALUES ('x')
$ SELECT employee_id FROM hr.emp_temp
= 1
## 14 audit columns by a trigger
TRIGGER biu BEFORE INSERT OR UPDATE ON emp_temp FOR EACH ROW
BEGIN
  IF INSERTING THEN :NEW.hire_date := SYSDATE; END IF;
  IF UPDATING AND :OLD.salary <> :NEW.salary THEN :NEW.job_id := NVL(:NEW.job_id, 'RAISED'); END IF;
END;
/
$ INSERT INTO hr.emp_temp (employee_id, salary) VALUES (1, 2)
$ UPDATE hr.emp_temp SET salary = 3
$ SELECT job_id FROM hr.emp_temp WHERE hire_date IS NOT NULL
= RAISED
## 14 a function that returns a value and an OUT parameter
FUNCTION both(a NUMBER, b OUT NUMBER) RETURN NUMBER IS BEGIN b := a + 1; RETURN a; END;
! OUT
## 14 a loop with a COMMIT for each batch
PROCEDURE purge IS
BEGIN
  LOOP
    DELETE FROM emp_log WHERE ROWNUM <= 1000;
    EXIT WHEN SQL%ROWCOUNT = 0;
    COMMIT;
  END LOOP;
END;
! ROWNUM
## 14 an upsert that counts
PROCEDURE upsert(p_id NUMBER, p_name VARCHAR2) IS
BEGIN
  UPDATE dept_temp SET department_name = p_name WHERE department_id = p_id;
  IF SQL%ROWCOUNT = 0 THEN
    INSERT INTO dept_temp (department_id, department_name) VALUES (p_id, p_name);
  END IF;
END;
/
$ CALL hr.upsert(1, 'a')
$ CALL hr.upsert(1, 'b')
$ SELECT department_id || department_name FROM hr.dept_temp
= 1b
## 14 a function that returns a cursor
FUNCTION get_emps(d NUMBER) RETURN SYS_REFCURSOR IS
  c SYS_REFCURSOR;
BEGIN
  OPEN c FOR SELECT last_name FROM employees WHERE department_id = d;
  RETURN c;
END;
! SYS_REFCURSOR
## 14 splitting a text
FUNCTION part(list VARCHAR2, place PLS_INTEGER, sep VARCHAR2 := ',') RETURN VARCHAR2 DETERMINISTIC IS
  b PLS_INTEGER := 1;
  e PLS_INTEGER;
BEGIN
  FOR i IN 1 .. place - 1 LOOP
    b := INSTR(list, sep, b) + LENGTH(sep);
    IF b = LENGTH(sep) THEN RETURN NULL; END IF;
  END LOOP;
  e := INSTR(list || sep, sep, b);
  RETURN SUBSTR(list, b, e - b);
END;
/
$ SELECT hr.part('a,bc,d', 2) || hr.part('a,bc,d', 3) || COALESCE(hr.part('a', 2), '?')
= bcd?
## 14 age in years
FUNCTION age(born DATE, at_date DATE) RETURN NUMBER IS
BEGIN
  RETURN TRUNC(MONTHS_BETWEEN(at_date, born) / 12);
END;
/
$ SELECT hr.age('2000-02-29', '2026-02-28') + hr.age('2000-03-29', '2026-03-28')
= 51
## 14 number of working days
FUNCTION workdays(a DATE, b DATE) RETURN PLS_INTEGER IS
  d DATE := TRUNC(a);
  n PLS_INTEGER := 0;
BEGIN
  WHILE d <= b LOOP
    IF TO_CHAR(d, 'DY', 'NLS_DATE_LANGUAGE=ENGLISH') NOT IN ('SAT', 'SUN') THEN n := n + 1; END IF;
    d := d + 1;
  END LOOP;
  RETURN n;
END;
/
$ SELECT hr.workdays('2026-11-27', '2026-12-01')
= 3
## 14 is a text a number
FUNCTION is_number(t VARCHAR2) RETURN NUMBER IS
  n NUMBER;
BEGIN
  n := TO_NUMBER(t);
  RETURN 1;
EXCEPTION
  WHEN VALUE_ERROR OR INVALID_NUMBER THEN RETURN 0;
END;
/
$ SELECT hr.is_number('1.5') || ',' || hr.is_number('x') || ',' || hr.is_number('')
= 1,0,1
## 15 a handler that can return without raising
PROCEDURE p(n NUMBER) IS
BEGIN
  INSERT INTO emp_log (emp_id) VALUES (1);
  INSERT INTO emp_log (emp_id) VALUES (1 / n);
EXCEPTION
  WHEN OTHERS THEN
    IF n = 0 THEN RETURN; END IF;
    RAISE;
END;
! rolls back
## 15 a handler that always raises
PROCEDURE q(n NUMBER) IS
BEGIN
  INSERT INTO emp_log (emp_id) VALUES (1);
  INSERT INTO emp_log (emp_id) VALUES (1 / n);
EXCEPTION
  WHEN ZERO_DIVIDE THEN
    IF n = 0 THEN DBMS_OUTPUT.PUT_LINE(SQLCODE); END IF;
    RAISE_APPLICATION_ERROR(-20999, 'none');
END;
/
$ CALL hr.q(0)
> -1476
? ORA-20999: none
## 15 a declaration that depends on an empty parameter
FUNCTION f(p VARCHAR2) RETURN VARCHAR2 IS
  v VARCHAR2(10) := NVL(p, 'none');
BEGIN
  RETURN v || f.p || f.v;
END;
/
$ SELECT hr.f('') || hr.f('x')
= nonenonexxx
## 15 a variable with the name of a variable of PL/pgSQL, and of a system column
FUNCTION f RETURN NUMBER IS
  CURSOR c IS SELECT employee_id FROM employees WHERE employee_id < 102;
  found BOOLEAN := FALSE;
  xmin NUMBER := 101;
  n NUMBER := 0;
  total NUMBER := 0;
BEGIN
  OPEN c;
  LOOP
    FETCH c INTO n;
    EXIT WHEN c%NOTFOUND;
    total := total + n;
    EXIT WHEN found;
  END LOOP;
  CLOSE c;
  SELECT COUNT(*) INTO n FROM employees WHERE employee_id <= xmin;
  RETURN total + n;
END;
/
$ SELECT hr.f()
= 203
## 15 RETURNING INTO of no row keeps the variables
DECLARE
  v VARCHAR2(20) := 'before';
  n NUMBER;
BEGIN
  UPDATE employees SET salary = 1 WHERE employee_id = -1 RETURNING last_name INTO v;
  n := SQL%ROWCOUNT;
  DELETE FROM employees WHERE employee_id = 206 RETURNING last_name, salary INTO v, n;
  DBMS_OUTPUT.PUT_LINE(v || n || SQL%ROWCOUNT);
  UPDATE employees SET salary = 1 WHERE employee_id = -1 RETURNING last_name INTO v;
  DBMS_OUTPUT.PUT_LINE(v || SQL%ROWCOUNT);
END;
> Gietz83001
> Gietz0
## 15 RETURNING INTO of several rows
DECLARE
  v NUMBER;
BEGIN
  UPDATE employees SET salary = 1 WHERE department_id = 60 RETURNING salary INTO v;
EXCEPTION
  WHEN TOO_MANY_ROWS THEN DBMS_OUTPUT.PUT_LINE('several');
END;
/
$ CALL hr.p()
$ SELECT COUNT(*) FROM hr.employees WHERE salary = 1
> several
= 0
## 15 RETURNING of an aggregate
DECLARE
  v NUMBER;
BEGIN
  UPDATE employees SET salary = 1 RETURNING SUM(salary) INTO v;
END;
! aggregate
## 15 SQL%ROWCOUNT after statements that fail
DECLARE
  n NUMBER;
BEGIN
  UPDATE employees SET salary = 1 WHERE department_id = 60;
  BEGIN
    SELECT employee_id INTO n FROM employees;
  EXCEPTION
    WHEN TOO_MANY_ROWS THEN DBMS_OUTPUT.PUT_LINE(SQL%ROWCOUNT);
  END;
  BEGIN
    SELECT employee_id INTO n FROM employees WHERE employee_id = -1;
  EXCEPTION
    WHEN NO_DATA_FOUND THEN DBMS_OUTPUT.PUT_LINE(SQL%ROWCOUNT);
  END;
END;
> 1
> 0
## 15 VALUE_ERROR is not raised by a conversion in SQL
FUNCTION f(p VARCHAR2) RETURN NUMBER IS
  n NUMBER;
BEGIN
  SELECT TO_NUMBER(p) INTO n FROM dual;
  RETURN n;
EXCEPTION
  WHEN VALUE_ERROR THEN RETURN -1;
END;
! INVALID_NUMBER
## 15 INVALID_NUMBER is not raised by a conversion in PL/SQL
FUNCTION f(p VARCHAR2) RETURN NUMBER IS
BEGIN
  RETURN TO_NUMBER(p);
EXCEPTION
  WHEN INVALID_NUMBER THEN RETURN -1;
END;
! VALUE_ERROR
## 15 VALUE_ERROR is not raised by a value that does not fit into a column
PROCEDURE p(t VARCHAR2) IS
BEGIN
  INSERT INTO emp_log (action) VALUES (t);
EXCEPTION
  WHEN VALUE_ERROR THEN NULL;
END;
! VALUE_ERROR of a block that changes rows
## 15 an exception of a number that another error shares
PROCEDURE p IS
  no_parent EXCEPTION;
  PRAGMA EXCEPTION_INIT(no_parent, -2291);
BEGIN
  DELETE FROM departments;
EXCEPTION
  WHEN no_parent THEN NULL;
END;
! ORA-2291
## 15 SQLCODE that is compared with a number without an SQLSTATE of its own
PROCEDURE p IS
BEGIN
  INSERT INTO emp_log (emp_id) VALUES (1);
EXCEPTION
  WHEN OTHERS THEN
    IF SQLCODE = -2292 THEN NULL; ELSE RAISE; END IF;
END;
! -2292
## 15 SQLCODE of the application's errors
DECLARE
  own EXCEPTION;
BEGIN
  FOR i IN 1..3 LOOP
    BEGIN
      IF i = 1 THEN RAISE own; ELSIF i = 2 THEN RAISE_APPLICATION_ERROR(-20042, 'x'); ELSE RAISE DUP_VAL_ON_INDEX; END IF;
    EXCEPTION
      WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE(SQLCODE);
    END;
  END LOOP;
END;
> 1
> -20042
> -1
## 15 an exception with the number of an application's error
DECLARE
  late EXCEPTION;
  PRAGMA EXCEPTION_INIT(late, -20100);
BEGIN
  BEGIN
    RAISE_APPLICATION_ERROR(-20101, 'other');
  EXCEPTION
    WHEN late THEN DBMS_OUTPUT.PUT_LINE('wrong');
    WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE(SQLERRM);
  END;
  RAISE_APPLICATION_ERROR(-20100, 'late');
EXCEPTION
  WHEN late THEN DBMS_OUTPUT.PUT_LINE('late');
END;
> ORA-20101: other
> late
## 15 an inner exception with the name of a predefined one
DECLARE
BEGIN
  DECLARE
    no_data_found EXCEPTION;
  BEGIN
    RAISE no_data_found;
  END;
EXCEPTION
  WHEN NO_DATA_FOUND THEN DBMS_OUTPUT.PUT_LINE('predefined');
  WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('own');
END;
> own
## 15 a row that is locked before an exception
PROCEDURE p IS
  n NUMBER;
BEGIN
  SELECT salary INTO n FROM employees WHERE employee_id = 100 FOR UPDATE;
  n := 1 / (n - 24000);
EXCEPTION
  WHEN ZERO_DIVIDE THEN NULL;
END;
! rolls back
## 15 FETCH after an exception
PROCEDURE p IS
  CURSOR c IS SELECT employee_id FROM employees;
  n NUMBER;
BEGIN
  BEGIN
    OPEN c;
    n := 1 / 0;
  EXCEPTION
    WHEN ZERO_DIVIDE THEN NULL;
  END;
  FETCH c INTO n;
END;
! FETCH of C after an exception
## 15 a cursor that reads a variable which an inner block hides
PROCEDURE p IS
  n NUMBER := 100;
  CURSOR c IS SELECT last_name FROM employees WHERE employee_id = n;
BEGIN
  DECLARE
    n NUMBER := 101;
  BEGIN
    FOR r IN c LOOP DBMS_OUTPUT.PUT_LINE(r.last_name); END LOOP;
  END;
END;
! hidden here
## 15 CASE evaluates its operand once
PROCEDURE p IS
BEGIN
  CASE employees_seq.NEXTVAL WHEN 2 THEN NULL; ELSE NULL; END CASE;
END;
! CASE of a call
## 15 UPDATE of several columns from a query without a row
BEGIN
  UPDATE departments SET (manager_id, location_id) = (SELECT 1, 2 FROM dual WHERE 1 = 0) WHERE department_id = 10;
END;
/
$ CALL hr.p()
$ SELECT COUNT(*) FROM hr.departments WHERE manager_id IS NULL AND location_id IS NULL AND department_id = 10
= 1
## 15 a statement trigger without rows, and its events
TRIGGER t BEFORE INSERT OR UPDATE OF salary OR DELETE ON emp_temp
BEGIN
  IF INSERTING THEN DBMS_OUTPUT.PUT_LINE('insert'); ELSIF UPDATING THEN DBMS_OUTPUT.PUT_LINE('update'); ELSE DBMS_OUTPUT.PUT_LINE('delete'); END IF;
END;
/
$ INSERT INTO hr.emp_temp (employee_id) VALUES (1), (2)
$ UPDATE hr.emp_temp SET salary = 1 WHERE employee_id = 7
$ UPDATE hr.emp_temp SET last_name = 'x'
$ DELETE FROM hr.emp_temp
> insert
> update
> delete
## 15 a record type
DECLARE
  TYPE pair IS RECORD (name VARCHAR2(5), amount NUMBER(5,1) := 1.25);
  a pair;
  b pair;
BEGIN
  b := a;
  a.name := 'a' || a.name;
  DBMS_OUTPUT.PUT_LINE(a.name || b.name || b.amount);
  SELECT last_name, salary INTO a.name, a.amount FROM employees WHERE employee_id = 102;
EXCEPTION
  WHEN VALUE_ERROR THEN DBMS_OUTPUT.PUT_LINE('does not fit');
END;
> a1.3
> does not fit
## 15 FORALL counts all rows, and INDICES OF
DECLARE
  TYPE ids IS TABLE OF employees.department_id%TYPE INDEX BY PLS_INTEGER;
  TYPE names IS TABLE OF VARCHAR2(30) INDEX BY BINARY_INTEGER;
  d ids;
  e ids;
  n names;
BEGIN
  DBMS_OUTPUT.PUT_LINE(d.COUNT);
  SELECT department_id, department_name BULK COLLECT INTO d, n FROM departments WHERE department_id IN (20, 30, 120) ORDER BY department_id DESC;
  FORALL i IN 1 .. d.COUNT UPDATE employees SET job_id = SUBSTR(n(i), 1, 3) WHERE department_id = d(i);
  DBMS_OUTPUT.PUT_LINE(SQL%ROWCOUNT);
  FORALL i IN INDICES OF d INSERT INTO dept_temp (department_id, department_name) VALUES (d(i), n(i));
  DBMS_OUTPUT.PUT_LINE(SQL%ROWCOUNT || d.FIRST || d.LAST);
  e.DELETE;
  DBMS_OUTPUT.PUT_LINE(e.COUNT || 'x' || e.LAST);
  SELECT employee_id BULK COLLECT INTO e FROM employees WHERE employee_id < 0;
  DBMS_OUTPUT.PUT_LINE(SQL%ROWCOUNT);
  FORALL i IN 1 .. e.COUNT DELETE FROM employees;
  DBMS_OUTPUT.PUT_LINE(SQL%ROWCOUNT);
END;
/
$ CALL hr.p()
$ SELECT string_agg(DISTINCT job_id, ',') FROM hr.employees WHERE department_id IN (20, 30)
> 0
> 8
> 313
> 0x
> 0
> 0
= Mar,Pur
## 15 an element that may not exist
DECLARE
  TYPE ids IS TABLE OF NUMBER;
  d ids := ids(1, 2);
BEGIN
  DBMS_OUTPUT.PUT_LINE(d(3));
END;
! another index
## 15 collections that different statements fill
DECLARE
  TYPE ids IS TABLE OF NUMBER;
  a ids;
  b ids;
BEGIN
  SELECT employee_id BULK COLLECT INTO a FROM employees;
  SELECT department_id BULK COLLECT INTO b FROM departments;
  FOR i IN 1 .. a.COUNT LOOP DBMS_OUTPUT.PUT_LINE(b(i)); END LOOP;
END;
! another index
## 15 a collection that a loop over it changes
DECLARE
  TYPE ids IS TABLE OF NUMBER;
  a ids;
BEGIN
  SELECT employee_id BULK COLLECT INTO a FROM employees;
  FOR i IN 1 .. a.COUNT LOOP
    IF a(i) = 100 THEN a.DELETE; END IF;
  END LOOP;
END;
! in a loop over it
## 15 a loop from FIRST to LAST of an empty collection
DECLARE
  TYPE ids IS TABLE OF NUMBER;
  a ids := ids();
BEGIN
  FOR i IN a.FIRST .. a.LAST LOOP NULL; END LOOP;
EXCEPTION
  WHEN VALUE_ERROR THEN DBMS_OUTPUT.PUT_LINE('no bounds');
END;
> no bounds
## 15 FETCH BULK COLLECT with LIMIT and %NOTFOUND
DECLARE
  TYPE ids IS TABLE OF NUMBER;
  a ids;
  CURSOR c IS SELECT employee_id FROM employees WHERE department_id = 60;
BEGIN
  OPEN c;
  LOOP
    FETCH c BULK COLLECT INTO a LIMIT 2;
    DBMS_OUTPUT.PUT_LINE(a.COUNT || ' ' || c%ROWCOUNT);
    EXIT WHEN c%NOTFOUND;
  END LOOP;
  CLOSE c;
END;
> 2 2
> 2 4
> 1 5
## 15 FORALL with SAVE EXCEPTIONS
DECLARE
  TYPE ids IS TABLE OF NUMBER;
  a ids := ids(1);
BEGIN
  FORALL i IN 1 .. a.COUNT SAVE EXCEPTIONS DELETE FROM employees WHERE employee_id = a(i);
END;
! SAVE EXCEPTIONS
## 15 a collection of records
DECLARE
  TYPE emps IS TABLE OF employees%ROWTYPE;
  a emps;
BEGIN
  SELECT * BULK COLLECT INTO a FROM employees;
END;
! of records
## 15 fetch first
FUNCTION f(n NUMBER) RETURN NUMBER IS c NUMBER := 0; BEGIN FOR r IN (SELECT 1 x FROM employees ORDER BY last_name FETCH FIRST n ROWS ONLY) LOOP c := c + 1; END LOOP; RETURN c; END;
/
$ SELECT hr.f(3) || ',' || hr.f(NULL) || ',' || hr.f(0) || ',' || hr.f(-1) || ',' || hr.f(2.5)
= 3,0,0,0,2
## 15 offset
FUNCTION f(n NUMBER) RETURN NUMBER IS c NUMBER := 0; BEGIN FOR r IN (SELECT 1 x FROM departments ORDER BY department_id OFFSET n ROWS) LOOP c := c + 1; END LOOP; RETURN c; END;
/
$ SELECT hr.f(3) || ',' || hr.f(NULL) || ',' || hr.f(-1)
= 9,0,12
## 15 implicit conversions
FUNCTION f(a VARCHAR2, b NUMBER) RETURN VARCHAR2 IS n NUMBER := a; v VARCHAR2(10) := b; c CHAR(3) := 'x'; BEGIN IF a > 9 THEN v := v || 'big'; END IF; IF c = 'x' THEN v := v || c; END IF; RETURN v || (n + a); END;
/
$ SELECT hr.f('10', 0.5)
= .5bigx  20
## 15 name of column and variable
PROCEDURE p(last_name VARCHAR2, salary NUMBER) IS BEGIN INSERT INTO emp_temp (employee_id, last_name, salary) VALUES (1, last_name, salary); UPDATE emp_temp SET salary = salary + p.salary WHERE last_name = p.last_name; END;
/
$ CALL hr.p('a', 5)
$ SELECT salary FROM hr.emp_temp
= 10
## 15 boolean default null and three values
FUNCTION f(b BOOLEAN DEFAULT NULL) RETURN VARCHAR2 IS BEGIN IF b THEN RETURN 't'; ELSIF NOT b THEN RETURN 'f'; ELSE RETURN 'n'; END IF; END;
/
$ SELECT hr.f() || hr.f(true) || hr.f(false)
= ntf
## 15 division
FUNCTION f(a PLS_INTEGER, b PLS_INTEGER) RETURN NUMBER IS i PLS_INTEGER; BEGIN i := a / b; RETURN a / b * 10 + i; END;
/
$ SELECT hr.f(7, 2)
= 39
## 15 not null variable
FUNCTION f(a NUMBER) RETURN VARCHAR2 IS n NUMBER NOT NULL := 1; BEGIN n := a; RETURN n; EXCEPTION WHEN VALUE_ERROR THEN RETURN 'null'; END;
/
$ SELECT hr.f(NULL) || hr.f(2)
= null2
## 15 trigger old new
TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON emp_temp FOR EACH ROW BEGIN IF :OLD.employee_id IS NULL AND :NEW.employee_id IS NULL THEN DBMS_OUTPUT.PUT_LINE('both'); ELSIF :OLD.employee_id IS NULL THEN DBMS_OUTPUT.PUT_LINE('old'); ELSIF :NEW.employee_id IS NULL THEN DBMS_OUTPUT.PUT_LINE('new'); END IF; END;
/
$ INSERT INTO hr.emp_temp (employee_id) VALUES (1)
$ INSERT INTO hr.emp_temp (employee_id) VALUES (NULL)
$ DELETE FROM hr.emp_temp
$ SELECT COUNT(*) FROM hr.emp_temp
> old
> both
> new
> both
= 0
## 15 exit in handler of loop
FUNCTION f RETURN VARCHAR2 IS v VARCHAR2(20); BEGIN FOR i IN 1..5 LOOP BEGIN v := v || i; IF i = 3 THEN RAISE NO_DATA_FOUND; END IF; EXCEPTION WHEN NO_DATA_FOUND THEN v := v || '!'; EXIT; END; END LOOP; RETURN v; END;
/
$ SELECT hr.f()
= 123!
## 15 char parameter compare
FUNCTION f(v VARCHAR2) RETURN VARCHAR2 IS c CHAR(4) := v; BEGIN IF c = v THEN RETURN 'equal'; END IF; IF c = 'ab' THEN RETURN 'literal'; END IF; RETURN LENGTH(c); END;
/
$ SELECT hr.f('ab') || hr.f('abcd')
= literalequal
## 15 function default named
FUNCTION f(a NUMBER DEFAULT 1, b NUMBER DEFAULT 2) RETURN NUMBER IS BEGIN RETURN a * 10 + b; END;
/
FUNCTION g RETURN NUMBER IS BEGIN RETURN f(b => 5) + f + f(3); END;
/
$ SELECT hr.g()
= 59
## 15 out params by name
PROCEDURE q(a NUMBER, b OUT NUMBER, c IN OUT VARCHAR2) IS BEGIN b := a * 2; c := c || 'x'; END;
/
DECLARE n NUMBER; v VARCHAR2(10) := 'v'; BEGIN q(c => v, a => 4, b => n); DBMS_OUTPUT.PUT_LINE(n || v); END;
> 8vx
## 15 OUT arguments of other types, and fields
PROCEDURE q(a IN OUT VARCHAR2, b OUT NUMBER, c OUT VARCHAR2) IS BEGIN a := a || 'x'; b := 1.25; c := NULL; END;
/
DECLARE
  d departments%ROWTYPE;
  v VARCHAR2(10) := 'v';
  n NUMBER(4,1);
BEGIN
  d.department_name := 'before';
  q(v, n, d.department_name);
  DBMS_OUTPUT.PUT_LINE(v || n || d.department_name);
  v := '123456789';
  q(v, n, v);
  q(v, n, d.department_name);
END;
> vx1.3
## 15 fields of a NOT NULL column are NULL before the row is stored
TRIGGER t BEFORE INSERT ON employees FOR EACH ROW
DECLARE
  r employees%ROWTYPE;
BEGIN
  DBMS_OUTPUT.PUT_LINE('old ' || :OLD.last_name || r.last_name || '.');
  :NEW.first_name := 'new ' || :NEW.last_name;
  :NEW.last_name := NVL(:NEW.last_name, 'none');
  IF :OLD.job_id IS NULL THEN :NEW.job_id := 'X'; END IF;
END;
/
$ INSERT INTO hr.employees (employee_id, hire_date) VALUES (1, now())
$ SELECT first_name || last_name || job_id FROM hr.employees WHERE employee_id = 1
> old .
= new noneX
## 15 a package shares types, exceptions, cursors and constants with its routines
PACKAGE k AS
  c_max CONSTANT PLS_INTEGER := 3;
  SUBTYPE name_t IS VARCHAR2(30);
  e_bad EXCEPTION;
  e_late EXCEPTION;
  PRAGMA EXCEPTION_INIT(e_late, -20010);
  FUNCTION f(n NUMBER) RETURN VARCHAR2;
END k;
/
PACKAGE BODY k AS
  TYPE pair_t IS RECORD (a name_t, b NUMBER);
  CURSOR c_heads IS SELECT last_name FROM employees WHERE employee_id IN (100, 101) ORDER BY employee_id;
  PROCEDURE check_it(n NUMBER) IS
  BEGIN
    IF n > k.c_max THEN RAISE e_bad; ELSIF n < 0 THEN RAISE_APPLICATION_ERROR(-20010, 'late'); END IF;
  END check_it;
  FUNCTION label(p name_t) RETURN name_t IS BEGIN RETURN '<' || p || '>'; END;
  FUNCTION f(n NUMBER) RETURN VARCHAR2 IS
    r pair_t;
    v VARCHAR2(200);
  BEGIN
    r.a := 'x';
    FOR e IN c_heads LOOP v := v || e.last_name; END LOOP;
    BEGIN
      IF n > c_max THEN RAISE k.e_bad; END IF;
    EXCEPTION
      WHEN e_bad THEN v := v || ' bad';
    END;
    RETURN r.a || v || n;
  END f;
  PROCEDURE report(n NUMBER) IS
  BEGIN
    check_it(n);
  EXCEPTION
    WHEN e_bad THEN RAISE_APPLICATION_ERROR(-20011, 'bad');
    WHEN k.e_late THEN RAISE_APPLICATION_ERROR(-20012, SQLERRM);
  END;
END k;
/
$ SELECT k.f(1) || k.f(7) || k.label('l')
$ CALL k.report(2)
$ DO $$ BEGIN CALL k.report(-1); EXCEPTION WHEN SQLSTATE 'OE012' THEN RAISE NOTICE '%', SQLERRM; END $$
$ CALL k.report(9)
> ORA-20012: ORA-20010: late
? ORA-20011: bad
## 15 a call with empty brackets and with the owner
PROCEDURE q IS BEGIN DBMS_OUTPUT.PUT_LINE('q'); END;
/
BEGIN q; q(); hr.q; END;
> q
> q
> q
## 15 rows of a table whose columns have another order in the target
DECLARE
  a errors%ROWTYPE;
  b errors%ROWTYPE;
  CURSOR c IS SELECT * FROM errors ORDER BY code;
  r c%ROWTYPE;
BEGIN
  a.code := 1;
  a.message := 'one';
  INSERT INTO errors VALUES a;
  SELECT * INTO b FROM errors;
  DBMS_OUTPUT.PUT_LINE(b.code || b.message);
  OPEN c;
  FETCH c INTO a;
  CLOSE c;
  OPEN c;
  FETCH c INTO r;
  CLOSE c;
  b.message := 'other';
  b := r;
  DBMS_OUTPUT.PUT_LINE(a.code || a.message || r.code || r.message || b.message);
  UPDATE errors SET message = 'two' WHERE code = 1 RETURNING code, message INTO a;
  DBMS_OUTPUT.PUT_LINE(a.code || a.message);
END;
> 1one
> 1one1oneone
> 1two
## 15 EXCEPTION_INIT of 100
DECLARE
  nothing EXCEPTION;
  PRAGMA EXCEPTION_INIT(nothing, 100);
  n NUMBER;
BEGIN
  SELECT code INTO n FROM errors;
EXCEPTION
  WHEN nothing THEN DBMS_OUTPUT.PUT_LINE('none');
END;
> none
## 15 pls with a large literal
FUNCTION f(i PLS_INTEGER) RETURN NUMBER IS BEGIN RETURN i * 3000000000 + i; END;
/
$ SELECT hr.f(2)
= 6000000002
## 15 pls with small literals
FUNCTION f(i PLS_INTEGER) RETURN NUMBER IS BEGIN RETURN 2 * i + 1; END;
/
$ SELECT hr.f(2)
= 5
## 15 reraise keeps the code
PROCEDURE q IS BEGIN RAISE_APPLICATION_ERROR(-20005, 'five'); EXCEPTION WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE(SQLCODE); RAISE; END;
/
$ CALL hr.q()
> -20005
? ORA-20005: five
## 15 sql%rowcount null before
PROCEDURE p IS BEGIN IF SQL%ROWCOUNT IS NULL AND SQL%FOUND IS NULL THEN DBMS_OUTPUT.PUT_LINE('null'); END IF; UPDATE employees SET salary = 2; DBMS_OUTPUT.PUT_LINE(SQL%ROWCOUNT); END;
> null
> 33
## 15 label on loop and block with same variable names
PROCEDURE p IS n NUMBER := 1; BEGIN <<b1>> DECLARE n NUMBER := 2; BEGIN <<b2>> DECLARE n NUMBER := 3; BEGIN b1.n := b1.n * 10; b2.n := n + b1.n + p.n; DBMS_OUTPUT.PUT_LINE(n || ' ' || b1.n || ' ' || p.n); END b2; END b1; END;
> 24 20 1
## 15 variable in trigger named as column
TRIGGER t BEFORE UPDATE ON emp_temp FOR EACH ROW DECLARE salary NUMBER; BEGIN SELECT MAX(e.salary) INTO salary FROM employees e WHERE e.department_id = :NEW.department_id; :NEW.salary := LEAST(:NEW.salary, salary); END;
/
$ INSERT INTO hr.emp_temp (employee_id, department_id, salary) VALUES (1, 20, 5)
$ UPDATE hr.emp_temp SET salary = 99999
$ SELECT salary FROM hr.emp_temp
= 13000
## 15 a view with * of a table whose columns have another order in the target
VIEW ev AS SELECT * FROM errors UNION ALL SELECT 2, 'two' FROM dual
/
$ INSERT INTO hr.errors (code, message) VALUES (1, 'one')
$ SELECT string_agg(code || message, ',' ORDER BY code) FROM hr.ev
= 1one,2two
## 16-1 record with other field names, SELECT INTO
DECLARE
  TYPE r_t IS RECORD (nm VARCHAR2(30), pay NUMBER(8,1));
  r r_t;
BEGIN
  SELECT last_name, salary + 0.06 INTO r FROM employees WHERE employee_id = 100;
  DBMS_OUTPUT.PUT_LINE(r.nm || ' ' || r.pay);
END;
> King 24000.1
## 16-2 record field length is checked by SELECT INTO
DECLARE
  TYPE r_t IS RECORD (nm VARCHAR2(3), pay NUMBER);
  r r_t;
BEGIN
  SELECT last_name, salary INTO r FROM employees WHERE employee_id = 100;
  DBMS_OUTPUT.PUT_LINE(r.nm);
EXCEPTION WHEN VALUE_ERROR THEN DBMS_OUTPUT.PUT_LINE('too long');
END;
> too long
## 16-3 NULL collection COUNT is ORA-06531
DECLARE
  TYPE t IS TABLE OF NUMBER;
  c t;
BEGIN
  IF c.COUNT = 0 THEN DBMS_OUTPUT.PUT_LINE('empty'); ELSE DBMS_OUTPUT.PUT_LINE('not empty'); END IF;
EXCEPTION WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('error');
END;
> error
## 16-4 DELETE of a null collection is ORA-06531
DECLARE
  TYPE t IS TABLE OF NUMBER;
  c t;
BEGIN
  c.DELETE;
  DBMS_OUTPUT.PUT_LINE(c.COUNT);
EXCEPTION WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('error');
END;
> error
## 16-5 constructor element too long
DECLARE
  TYPE t IS TABLE OF VARCHAR2(3);
  c t;
BEGIN
  c := t('abc', 'abcdef');
  FOR i IN 1 .. c.COUNT LOOP DBMS_OUTPUT.PUT_LINE(c(i)); END LOOP;
EXCEPTION WHEN VALUE_ERROR THEN DBMS_OUTPUT.PUT_LINE('too long');
END;
> too long
## 16-6 BULK COLLECT element too long
DECLARE
  TYPE t IS TABLE OF VARCHAR2(3);
  c t;
BEGIN
  SELECT last_name BULK COLLECT INTO c FROM employees WHERE department_id = 90;
  FOR i IN 1 .. c.COUNT LOOP DBMS_OUTPUT.PUT_LINE(c(i)); END LOOP;
EXCEPTION WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('too long');
END;
> too long
## 16-7 FETCH BULK COLLECT element too long
DECLARE
  TYPE t IS TABLE OF VARCHAR2(3);
  c t;
  CURSOR k IS SELECT last_name FROM employees WHERE department_id = 90;
BEGIN
  OPEN k;
  FETCH k BULK COLLECT INTO c LIMIT 2;
  FOR i IN 1 .. c.COUNT LOOP DBMS_OUTPUT.PUT_LINE(c(i)); END LOOP;
EXCEPTION WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('too long');
END;
> too long
## 16-8 VARRAY limit in the constructor
DECLARE
  TYPE t IS VARRAY(2) OF NUMBER;
  c t;
BEGIN
  c := t(1, 2, 3);
  DBMS_OUTPUT.PUT_LINE(c.COUNT);
EXCEPTION WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('error');
END;
! ORA-06532
## 16-9 VARRAY limit in BULK COLLECT
DECLARE
  TYPE t IS VARRAY(2) OF NUMBER;
  c t;
BEGIN
  SELECT employee_id BULK COLLECT INTO c FROM employees WHERE department_id = 90;
  DBMS_OUTPUT.PUT_LINE(c.COUNT);
EXCEPTION WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('error');
END;
> error
## 16-10 cursor FOR loop with ROWCOUNT of a cursor with parameters
DECLARE
  CURSOR k(d NUMBER) IS SELECT last_name FROM employees WHERE department_id = d ORDER BY employee_id;
BEGIN
  FOR r IN k(90) LOOP
    DBMS_OUTPUT.PUT_LINE(k%ROWCOUNT || r.last_name);
  END LOOP;
END;
> 1King
> 2Kochhar
> 3De Haan
## 16-11 ISOPEN in a cursor FOR loop
DECLARE
  CURSOR k(d NUMBER) IS SELECT last_name FROM employees WHERE department_id = d ORDER BY employee_id;
BEGIN
  FOR r IN k(10) LOOP
    IF k%ISOPEN THEN DBMS_OUTPUT.PUT_LINE('open'); ELSE DBMS_OUTPUT.PUT_LINE('closed'); END IF;
  END LOOP;
END;
! in a FOR loop over it
## 16-12 CLOSE of a cursor that was never opened
DECLARE
  CURSOR k IS SELECT last_name FROM employees;
  x employees.last_name%TYPE;
BEGIN
  IF x IS NOT NULL THEN OPEN k; END IF;
  CLOSE k;
EXCEPTION WHEN INVALID_CURSOR THEN DBMS_OUTPUT.PUT_LINE('invalid cursor');
END;
> invalid cursor
## 16-13 FETCH of a cursor that was never opened, VALUE_ERROR does not catch it
DECLARE
  CURSOR k IS SELECT last_name FROM employees;
  x employees.last_name%TYPE;
BEGIN
  IF x IS NOT NULL THEN OPEN k; END IF;
  BEGIN
    FETCH k INTO x;
  EXCEPTION WHEN VALUE_ERROR THEN DBMS_OUTPUT.PUT_LINE('value error');
  END;
EXCEPTION WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('other');
END;
> other
## 16-14 FOUND of a cursor that is closed
DECLARE
  CURSOR k IS SELECT last_name FROM employees;
  x employees.last_name%TYPE;
BEGIN
  OPEN k; FETCH k INTO x; CLOSE k;
  IF k%FOUND THEN DBMS_OUTPUT.PUT_LINE('found'); ELSE DBMS_OUTPUT.PUT_LINE('not found'); END IF;
EXCEPTION WHEN INVALID_CURSOR THEN DBMS_OUTPUT.PUT_LINE('invalid cursor');
END;
! where it may be closed
## 16-15 FOR UPDATE loop that changes rows it has not read yet
DECLARE
  n NUMBER := 0;
BEGIN
  FOR r IN (SELECT employee_id, salary FROM employees ORDER BY employee_id FOR UPDATE) LOOP
    n := n + 1;
    UPDATE employees SET salary = salary + 1 WHERE manager_id = r.employee_id;
  END LOOP;
  DBMS_OUTPUT.PUT_LINE(n);
END;
> 33
## 16-16 explicit FOR UPDATE cursor with changes of later rows
DECLARE
  CURSOR k IS SELECT employee_id, salary FROM employees WHERE department_id = 60 ORDER BY employee_id FOR UPDATE;
  id NUMBER; s NUMBER;
BEGIN
  OPEN k;
  LOOP
    FETCH k INTO id, s;
    EXIT WHEN k%NOTFOUND;
    DBMS_OUTPUT.PUT_LINE(id || ' ' || s);
    UPDATE employees SET salary = salary + 1 WHERE department_id = 60;
  END LOOP;
  CLOSE k;
END;
> 103 9000
> 104 6000
> 105 4800
> 106 4800
> 107 4200
## 16-17 a collection with the name place
DECLARE
  TYPE t IS TABLE OF departments.location_id%TYPE;
  place t;
  CURSOR k IS SELECT location_id FROM departments ORDER BY department_id;
BEGIN
  OPEN k;
  FETCH k BULK COLLECT INTO place LIMIT 2;
  CLOSE k;
  FOR i IN 1 .. place.COUNT LOOP DBMS_OUTPUT.PUT_LINE(place(i)); END LOOP;
END;
> 1700
> 1800
## 16-18 a default of a record field that fails is not caught by the block
BEGIN
  DECLARE
    TYPE r_t IS RECORD (a NUMBER := 1 / 0);
    r r_t;
  BEGIN
    NULL;
  EXCEPTION WHEN ZERO_DIVIDE THEN DBMS_OUTPUT.PUT_LINE('inner');
  END;
EXCEPTION WHEN ZERO_DIVIDE THEN DBMS_OUTPUT.PUT_LINE('outer');
END;
> outer
## 16-19 paired collections, one of which has a first value
DECLARE
  TYPE t IS TABLE OF NUMBER;
  a t := t(1, 2, 3); b t := t(); x NUMBER := 0;
BEGIN
  IF x = 1 THEN SELECT employee_id, salary BULK COLLECT INTO a, b FROM employees; END IF;
  FOR i IN 1 .. a.COUNT LOOP DBMS_OUTPUT.PUT_LINE(NVL(b(i), 0)); END LOOP;
EXCEPTION WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('error');
END;
! another index
## 16-20 loop variable hides a variable and the collection's index
DECLARE
  TYPE t IS TABLE OF NUMBER;
  c t := t(1, 2); i NUMBER := 9;
BEGIN
  FOR i IN 1 .. c.COUNT LOOP
    DECLARE i NUMBER := 7; BEGIN DBMS_OUTPUT.PUT_LINE(NVL(c(i), -1)); END;
  END LOOP;
EXCEPTION WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('error ' || i);
END;
! another index
## 16-21 NULL collection after a condition
DECLARE
  TYPE t IS TABLE OF NUMBER;
  c t; n NUMBER := 0;
BEGIN
  IF n = 1 THEN c := t(1); END IF;
  FOR i IN 1 .. c.COUNT LOOP NULL; END LOOP;
  DBMS_OUTPUT.PUT_LINE('no error');
EXCEPTION WHEN VALUE_ERROR THEN DBMS_OUTPUT.PUT_LINE('value error'); WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('error');
END;
> error
## 16-22 collection in use after it was filled
DECLARE
  TYPE t IS TABLE OF NUMBER(8,2);
  c t;
BEGIN
  SELECT salary BULK COLLECT INTO c FROM employees WHERE department_id = 90 ORDER BY employee_id;
  IF c.COUNT > 0 AND c.FIRST = 1 THEN DBMS_OUTPUT.PUT_LINE(c.LAST); END IF;
  FOR i IN c.FIRST .. c.LAST LOOP DBMS_OUTPUT.PUT_LINE(c(i)); END LOOP;
  c.DELETE;
  IF c.FIRST IS NULL THEN DBMS_OUTPUT.PUT_LINE(c.COUNT); END IF;
END;
> 3
> 24000
> 17000
> 17000
> 0
## 16-23 the FOR UPDATE loop
DECLARE
  CURSOR k(d NUMBER) IS SELECT employee_id e, salary + 1 s FROM employees WHERE department_id = d ORDER BY salary DESC, employee_id FOR UPDATE OF salary NOWAIT;
BEGIN
  FOR r IN k(60) LOOP
    DBMS_OUTPUT.PUT_LINE(k%ROWCOUNT || ' ' || r.e || ' ' || r.s);
    UPDATE employees SET salary = 1 WHERE department_id = 60;
    EXIT WHEN k%ROWCOUNT = 3;
  END LOOP;
END;
> 1 103 9001
> 2 104 6001
> 3 105 4801
## 16-24 ROWCOUNT of a cursor without parameters in its FOR loop
DECLARE
  CURSOR k IS SELECT last_name FROM employees WHERE department_id = 90 ORDER BY 1;
BEGIN
  <<o>>
  FOR r IN k LOOP
    CONTINUE o WHEN k%ROWCOUNT = 2;
    DBMS_OUTPUT.PUT_LINE(k%ROWCOUNT || r.last_name);
  END LOOP o;
END;
> 1De Haan
> 3Kochhar
## 16-25 a declaration that uses a field of a record
DECLARE
  TYPE r_t IS RECORD (a NUMBER := 5);
  r r_t; n NUMBER := r.a + 1;
BEGIN
  DBMS_OUTPUT.PUT_LINE(n);
END;
! reads a record
## 16-26 a record default that is too long
BEGIN
  DECLARE
    TYPE r_t IS RECORD (a VARCHAR2(2) := 'abc');
    r r_t;
  BEGIN
    DBMS_OUTPUT.PUT_LINE(r.a);
  EXCEPTION WHEN OTHERS THEN DBMS_OUTPUT.PUT_LINE('inner');
  END;
EXCEPTION WHEN VALUE_ERROR THEN DBMS_OUTPUT.PUT_LINE('outer');
END;
> outer
## 16-27 the row type of a cursor with other names in the query of SELECT INTO
DECLARE
  CURSOR k IS SELECT department_id AS id, department_name AS nm FROM departments;
  r k%ROWTYPE;
BEGIN
  SELECT department_id, department_name INTO r FROM departments WHERE department_id = 10;
  DBMS_OUTPUT.PUT_LINE(r.id || r.nm);
END;
> 10Administration
## 16-28 BULK COLLECT of an empty result into a VARRAY and refill
DECLARE
  TYPE t IS VARRAY(3) OF departments.department_name%TYPE;
  c t := t('a');
BEGIN
  SELECT department_name BULK COLLECT INTO c FROM departments WHERE department_id < 40 ORDER BY department_id;
  FOR i IN 1 .. c.COUNT LOOP DBMS_OUTPUT.PUT_LINE(c(i)); END LOOP;
END;
> Administration
> Marketing
> Purchasing
## 16-29 FETCH FOR UPDATE after a loop body that deleted the row
DECLARE
  CURSOR k IS SELECT * FROM departments WHERE department_id < 30 ORDER BY department_id FOR UPDATE;
  r departments%ROWTYPE;
BEGIN
  OPEN k;
  DELETE FROM departments;
  FETCH k INTO r;
  IF k%FOUND THEN DBMS_OUTPUT.PUT_LINE(r.department_name); ELSE DBMS_OUTPUT.PUT_LINE('none'); END IF;
  CLOSE k;
END;
! between OPEN and FETCH
## 16-30 OPEN and CLOSE only to lock
DECLARE
  CURSOR k IS SELECT 1 FROM dept_temp FOR UPDATE;
BEGIN
  OPEN k; CLOSE k;
END;
$ INSERT INTO hr.dept_temp VALUES (10, 'a', 1, 1)
$ CALL hr.p()
$ SELECT COUNT(*) FROM hr.dept_temp WHERE xmax <> 0
= 1
## 16-31 IF NOTFOUND THEN CLOSE and leave
FUNCTION f(d NUMBER) RETURN NUMBER IS
  CURSOR k IS SELECT salary FROM employees WHERE employee_id = d;
  n NUMBER;
BEGIN
  OPEN k; FETCH k INTO n;
  IF k%NOTFOUND THEN CLOSE k; RETURN -1; END IF;
  IF k%FOUND THEN n := n + k%ROWCOUNT; END IF;
  CLOSE k;
  RETURN n;
END;
$ SELECT hr.f(100) + hr.f(-1)
= 24000
## 16-32 SQLERRM of errors whose message is always the same
PROCEDURE p IS
  e EXCEPTION; n NUMBER;
BEGIN
  FOR i IN 1 .. 5 LOOP
    BEGIN
      IF i = 1 THEN RAISE e; ELSIF i = 2 THEN n := 1 / (i - 2); ELSIF i = 3 THEN RAISE TOO_MANY_ROWS; END IF;
      IF i = 4 THEN SELECT salary INTO n FROM employees WHERE employee_id = -1; END IF;
      RAISE_APPLICATION_ERROR(-20001, 'last');
    EXCEPTION WHEN OTHERS THEN
      BEGIN DBMS_OUTPUT.PUT_LINE(SQLCODE || ' ' || SQLERRM); END;
    END;
  END LOOP;
END;
> 1 User-Defined Exception
> -1476 ORA-01476: divisor is equal to zero
> -1422 ORA-01422: exact fetch returns more than requested number of rows
> 100 ORA-01403: no data found
> -20001 ORA-20001: last
## 16-33 branches that open and close a cursor
FUNCTION f(x NUMBER) RETURN VARCHAR2 IS
  CURSOR k(d NUMBER) IS SELECT last_name FROM employees WHERE employee_id = d;
  v VARCHAR2(30);
BEGIN
  IF x < 0 THEN OPEN k(-x); ELSE OPEN k(x); END IF;
  FETCH k INTO v;
  IF k%FOUND THEN
    CASE k%ROWCOUNT WHEN 1 THEN CLOSE k; ELSE RETURN 'never'; END CASE;
  ELSIF k%NOTFOUND THEN
    v := 'none' || k%ROWCOUNT; CLOSE k;
  END IF;
  IF k%ISOPEN THEN RETURN 'open'; END IF;
  RETURN v;
END;
$ SELECT hr.f(100) || hr.f(-101) || hr.f(5)
= KingKochharnone0
## 16-34 a cursor that one branch closes
PROCEDURE p IS
  CURSOR k IS SELECT last_name FROM employees; n NUMBER := 0; v VARCHAR2(30);
BEGIN
  OPEN k; FETCH k INTO v;
  IF n = 0 THEN CLOSE k; ELSE NULL; END IF;
  IF k%FOUND THEN DBMS_OUTPUT.PUT_LINE('found'); END IF;
END;
! where it may be closed
## 16-35 a subtype that is NOT NULL in a record
PROCEDURE p IS
  TYPE r_t IS RECORD (n SIMPLE_INTEGER := 1);
  r r_t;
BEGIN
  r.n := NULL;
END;
! is NOT NULL
## 16-36 FOR UPDATE of a table whose columns have another order in the target
DECLARE
  CURSOR k IS SELECT * FROM errors ORDER BY code FOR UPDATE;
  r k%ROWTYPE; q errors%ROWTYPE;
BEGIN
  INSERT INTO errors VALUES (7, '8');
  FOR x IN (SELECT * FROM errors FOR UPDATE) LOOP q := x; DBMS_OUTPUT.PUT_LINE(x.code || q.message); END LOOP;
  OPEN k; FETCH k INTO r; CLOSE k; DBMS_OUTPUT.PUT_LINE(r.code || r.message);
  OPEN k; FETCH k INTO q; CLOSE k; DBMS_OUTPUT.PUT_LINE(q.code || q.message);
  INSERT INTO errors VALUES r;
  r.message := 'long'; UPDATE errors SET ROW = r;
  DBMS_OUTPUT.PUT_LINE(SQL%ROWCOUNT);
END;
> 78
> 78
> 78
> 2
## 16-37 a function that locks a row with a cursor
FUNCTION f(id NUMBER) RETURN VARCHAR2 IS
  CURSOR k IS SELECT last_name FROM employees WHERE employee_id = id FOR UPDATE NOWAIT;
  v employees.last_name%TYPE; busy EXCEPTION; PRAGMA EXCEPTION_INIT(busy, -54);
BEGIN
  OPEN k; FETCH k INTO v; CLOSE k;
  RETURN v;
EXCEPTION WHEN busy THEN RETURN 'busy';
END;
$ SELECT hr.f(100)
= King
## 16-38 a handler would lose the locks of a cursor
PROCEDURE p IS
  CURSOR k IS SELECT last_name FROM employees FOR UPDATE; n NUMBER;
BEGIN
  OPEN k; CLOSE k; n := 1 / 0;
EXCEPTION WHEN ZERO_DIVIDE THEN NULL;
END;
! an exception handler of a block that changes or locks rows
## 16-39 a handler would lose the locks of a loop
PROCEDURE p IS n NUMBER := 0;
BEGIN
  FOR r IN (SELECT salary FROM employees FOR UPDATE) LOOP n := 1 / n; END LOOP;
EXCEPTION WHEN ZERO_DIVIDE THEN NULL;
END;
! an exception handler of a block that changes or locks rows
