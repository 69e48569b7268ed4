"""Commands that migrate a database: assess, schema, load, verify and repair, cut over, fall
back.
"""
