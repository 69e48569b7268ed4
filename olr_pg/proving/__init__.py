"""Scenarios of SQL that show whether each form of change is decoded correctly, and the judges that
check this.
"""
