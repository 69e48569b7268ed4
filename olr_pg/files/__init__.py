"""Functions and classes for files: durable, private, encrypted or mapped files, and files that
transfer results.
"""
