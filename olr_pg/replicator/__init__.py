"""The main loop, which decodes the captured logs for the targets' ports: its runs, and their
recovery.
"""
