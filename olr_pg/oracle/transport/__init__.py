"""Brings archived logs that are not mounted here into the vault: a command, SFTP, BFILEs."""
