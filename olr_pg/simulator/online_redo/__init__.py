"""The online redo logs of a simulated database, as its instances write them over time."""
