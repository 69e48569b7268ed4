"""Assembles row changes into complete DML of committed transactions, in commit order. No I/O."""
