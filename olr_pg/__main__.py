"""Runs the command line: ``python -m olr_pg`` does the same as ``olr-pg``."""

from olr_pg.cli.entry import run

if __name__ == "__main__":
    run()
