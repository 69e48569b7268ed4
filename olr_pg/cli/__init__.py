"""The commands of ``olr-pg``; those that move a database over are in `migration`."""
