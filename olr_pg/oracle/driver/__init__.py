"""Extends Oracle's driver: adds timeouts for its calls, and converts its errors to our error
codes.
"""
