"""The live Oracle source: reads its dictionary and archived logs, and checks the source for
problems.
"""
