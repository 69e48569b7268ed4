"""Replicates Oracle into PostgreSQL by reading Oracle's binary redo logs.

The rooms (sub-packages), in the order in which a row passes through them
(docs/internals/architecture.md names the functions):

    capture        finds archived logs, and the order in which they are decoded
    redo           blocks → redo records → change vectors → row pieces (redo.format: the format)
    dictionary     the tables and columns that object numbers stand for, as of an SCN
    transactions   row pieces → complete row changes of committed transactions; LOB values
    conditions     conditions that rows must meet; datatypes: the values in the bytes of columns
    decoding       all steps above for one split of a log, which are a Spark task (spark)
    ordering       merges the splits of all redo threads into one commit order
    wire, server   the protocol; the ready queue, the port, the checkpoint
    applier        the protocol's client: received bytes → batches → SQL → PostgreSQL; its ledger
    rendering      messages as JSON Lines and Arrow record batches, for `olr-pg decode`
    replicator     the loop that runs all this: it starts runs of decoding, and recovers from errors
    datasource     redo as Spark data frames: each task decodes separately, without the loop
    appliance      ``olr-pg run``: assembles, starts, watches and ends the parts
    oracle, load   the live source; whole tables: initial load, verification, repair, cut-over
    fallback       after the cut-over: applies what PostgreSQL commits to Oracle
    schema         source's schema as PostgreSQL statements; assessment: the cost of a migration;
                   migration: the steps to a cut-over
    monitor, observability, config, cli   status and metrics; logs; configuration; commands
    postgres, java, files, kernels, scalars, ordered_window, errors   used by the other rooms
    simulator, bench   a model of Oracle that writes redo; the benchmarks
    proving        SQL scenarios that check whether each kind of change is decoded correctly

If one room imports from another, the other never imports from the first; the layers are in
pyproject.toml.
"""
