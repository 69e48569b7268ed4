"""Assembles complete row changes of committed transactions, in commit order. No I/O."""
