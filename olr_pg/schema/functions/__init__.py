"""Contains tables of Oracle's SQL functions. A table has one row for each function, with the rule
that translates it.
"""
