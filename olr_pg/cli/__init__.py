"""The commands of ``olr-pg``."""
