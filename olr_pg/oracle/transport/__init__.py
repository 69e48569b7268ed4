"""Copies archived logs that are not mounted on this host into the vault: by a command, SFTP, or
BFILEs.
"""
