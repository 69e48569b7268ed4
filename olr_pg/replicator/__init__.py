"""The main loop that connects capture, decoding, server and applier: its runs, and their
recovery.
"""
