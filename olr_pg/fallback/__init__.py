"""Fallback after the cut-over: applies what PostgreSQL commits to Oracle."""
