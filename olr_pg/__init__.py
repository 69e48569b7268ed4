"""Replicates Oracle into PostgreSQL by reading Oracle's binary redo logs.

The rooms (sub-packages), in the order in which a row passes through them
(docs/internals/architecture.md names the functions):

    capture        which archived logs there are, in which order
    redo           blocks → records → change vectors → row pieces (redo.format: what is where)
    dictionary     which table and columns an object number stands for, as of an SCN
    transactions   row pieces → whole changes of committed transactions; LOBs
    conditions     which rows are wanted; datatypes: what the bytes of a column mean
    decoding       all of that for one split of a log: what a Spark task does (spark)
    ordering       the redo threads' splits → one order of commits
    wire, server   the protocol; the ready queue, the port, the checkpoint
    applier        the protocol's client: received bytes → batches → SQL → PostgreSQL, its ledger
    rendering      the messages as JSON Lines and Arrow record batches, for `olr-pg decode`
    replicator     the loop that joins these: which runs of decoding there are, and their recovery
    datasource     redo as data frames of Spark: each task by itself, without the loop
    appliance      ``olr-pg run``: the parts put together, started, watched, ended
    oracle, load   the live source; whole tables: initial load, verification, repair, cut-over
    fallback       the way back: what PostgreSQL commits after the cut-over, into Oracle
    schema         the source's schema as PostgreSQL's statements; assessment: what moving it costs;
                   migration: the steps to a cut-over
    monitor, observability, config, cli   status and metrics; logs; configuration; commands
    postgres, java, files, kernels, scalars, ordered_window, errors   what the others stand on
    simulator, bench   a model Oracle that writes redo, and the benchmarks
    proving        scenarios of SQL that show whether each form of change is read right

Imports go one way; the layers are in pyproject.toml.
"""
