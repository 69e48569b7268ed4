"""The shop's PL/SQL: a package, a procedure, a function, a type, and triggers."""

from __future__ import annotations

from typing import Final

from olr_pg.dictionary.inventory import Source, Trigger

_PACKAGE: Final = """PACKAGE order_api AS
  c_open CONSTANT CHAR(1) := 'N';
  TYPE t_ids IS TABLE OF NUMBER INDEX BY PLS_INTEGER;
  FUNCTION new_order(p_customer IN customers.customer_id%TYPE) RETURN NUMBER;
  PROCEDURE close_day(p_day IN DATE DEFAULT TRUNC(SYSDATE) - 1);
END order_api;
"""

_BODY: Final = """PACKAGE BODY order_api AS
  g_last NUMBER;

  PROCEDURE log_it(p_text VARCHAR2) IS
    PRAGMA AUTONOMOUS_TRANSACTION;
  BEGIN
    INSERT INTO audit_log (audit_id, at, who, what)
    VALUES (orders_seq.NEXTVAL, SYSDATE, USER, p_text);
    COMMIT;
  END log_it;

  FUNCTION new_order(p_customer IN customers.customer_id%TYPE) RETURN NUMBER IS
    v_id NUMBER;
  BEGIN
    SELECT orders_seq.NEXTVAL INTO v_id FROM dual;
    INSERT INTO orders (order_id, customer_id, status, lines, entered)
    VALUES (v_id, p_customer, c_open, 0, SYSTIMESTAMP);
    g_last := v_id;
    RETURN v_id;
  EXCEPTION
    WHEN NO_DATA_FOUND THEN
      RAISE_APPLICATION_ERROR(-20001, 'no customer ' || p_customer);
  END new_order;

  PROCEDURE close_day(p_day IN DATE DEFAULT TRUNC(SYSDATE) - 1) IS
    v_ids t_ids;
  BEGIN
    SELECT order_id BULK COLLECT INTO v_ids
    FROM orders WHERE status = c_open AND entered < p_day AND ROWNUM <= 1000;
    FORALL i IN 1 .. v_ids.COUNT
      UPDATE orders SET status = 'C' WHERE order_id = v_ids(i);
    DBMS_MVIEW.REFRESH('SALES_BY_DAY', 'C');
    DBMS_OUTPUT.PUT_LINE(SQL%ROWCOUNT || ' closed');
    log_it('closed');
  END close_day;
END order_api;
"""

_PROCEDURE: Final = """PROCEDURE pay(p_customer NUMBER, p_amount NUMBER) AS
BEGIN
  UPDATE customers SET balance = balance + p_amount WHERE customer_id = p_customer;
END;
"""

_FUNCTION: Final = """FUNCTION gross(p_net NUMBER) RETURN NUMBER DETERMINISTIC AS
BEGIN
  RETURN ROUND(p_net * 1.19, 2);
END;
"""

_TYPE: Final = """TYPE address_t AS OBJECT (
  street VARCHAR2(60), zip VARCHAR2(10), city VARCHAR2(40));
"""

_TRIGGER: Final = """BEGIN
  IF :NEW.customer_id IS NULL THEN
    SELECT customers_seq.NEXTVAL INTO :NEW.customer_id FROM dual;
  END IF;
  :NEW.name := TRIM(:NEW.name);
END;
"""

_INSTEAD: Final = """BEGIN
  UPDATE customers SET name = :NEW.name WHERE customer_id = :OLD.customer_id;
END;
"""


def shop_sources(owner: str) -> list[Source]:
    """Return the stored units."""
    return [
        Source(owner=owner, name=name, kind=kind, text=text)
        for name, kind, text in (
            ("ADDRESS_T", "TYPE", _TYPE),
            ("GROSS", "FUNCTION", _FUNCTION),
            ("ORDER_API", "PACKAGE", _PACKAGE),
            ("ORDER_API", "PACKAGE BODY", _BODY),
            ("PAY", "PROCEDURE", _PROCEDURE),
        )
    ]


def shop_triggers(owner: str) -> list[Trigger]:
    """Return the triggers, of a table and of a view."""
    return [
        Trigger(
            owner=owner,
            name="CUSTOMERS_BI",
            kind="BEFORE EACH ROW",
            event="INSERT",
            table_owner=owner,
            table="CUSTOMERS",
            body=_TRIGGER,
        ),
        Trigger(
            owner=owner,
            name="CUSTOMER_BALANCES_IO",
            kind="INSTEAD OF",
            event="UPDATE",
            base="VIEW",
            table_owner=owner,
            table="CUSTOMER_BALANCES",
            body=_INSTEAD,
        ),
    ]
