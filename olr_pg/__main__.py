"""``python -m olr_pg`` is ``olr-pg``."""

from olr_pg.cli.entry import run

if __name__ == "__main__":
    run()
