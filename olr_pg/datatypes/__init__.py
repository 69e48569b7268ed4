"""Conversion of Oracle column values in both directions, one file per family of types. Nothing here
does I/O.
"""
