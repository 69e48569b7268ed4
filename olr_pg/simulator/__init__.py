"""A model Oracle that writes byte-accurate redo."""
