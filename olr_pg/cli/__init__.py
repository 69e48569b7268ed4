"""The commands of ``olr-pg``; commands that migrate a database are in `migration`."""
