"""SQL scenarios that test whether each form of change is decoded correctly, and the judges that
check the results.
"""
