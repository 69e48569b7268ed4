"""Lists the schemas that belong to Oracle itself. From 12c on, DBA_USERS.ORACLE_MAINTAINED marks
these schemas.
"""

from __future__ import annotations

import re
from typing import Final

ORACLE_SCHEMAS: Final = frozenset(
    {
        "ANONYMOUS",
        "APEX_PUBLIC_USER",
        "APPQOSSYS",
        "AUDSYS",
        "BAASSYS",
        "CTXSYS",
        "DBSFWUSER",
        "DBSNMP",
        "DGPDB_INT",
        "DIP",
        "DMSYS",
        "DVF",
        "DVSYS",
        "EXFSYS",
        "FLOWS_FILES",
        "GGSHAREDCAP",
        "GGSYS",
        "GSMADMIN_INTERNAL",
        "GSMCATUSER",
        "GSMROOTUSER",
        "GSMUSER",
        "LBACSYS",
        "MDDATA",
        "MDSYS",
        "MGMT_VIEW",
        "OJVMSYS",
        "OLAPSYS",
        "ORACLE_OCM",
        "ORDDATA",
        "ORDPLUGINS",
        "ORDSYS",
        "OUTLN",
        "OWBSYS",
        "OWBSYS_AUDIT",
        "PUBLIC",
        "REMOTE_SCHEDULER_AGENT",
        "SI_INFORMTN_SCHEMA",
        "SPATIAL_CSW_ADMIN_USR",
        "SPATIAL_WFS_ADMIN_USR",
        "SYS",
        "SYS$UMF",
        "SYSBACKUP",
        "SYSDG",
        "SYSKM",
        "SYSMAN",
        "SYSRAC",
        "SYSTEM",
        "TSMSYS",
        "VECSYS",
        "WKPROXY",
        "WKSYS",
        "WK_TEST",
        "WMSYS",
        "XDB",
        "XS$NULL",
    }
)

_APEX_SCHEMA: Final = re.compile(r"APEX_\d{6}")


def is_oracle_schema(owner: str) -> bool:
    """Return whether a schema belongs to Oracle; its tables contain no user data."""
    return owner in ORACLE_SCHEMAS or _APEX_SCHEMA.fullmatch(owner) is not None
