"""Stopped tables: their held changes, the reasons why they stopped, and how DDL affects them."""
