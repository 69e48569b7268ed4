"""Copies archived logs that are not mounted on this host into the vault: by a command, by SFTP, or
as BFILEs.
"""
