"""The way back: what PostgreSQL commits after the cut-over is brought into Oracle."""
