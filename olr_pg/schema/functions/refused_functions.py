"""Lists Oracle's functions that are not translated, each with its purpose and a replacement.

Every function in Oracle's SQL Language Reference (12c to 26ai) and in other public lists is either
listed here or translated. Tests contain these lists.
"""

from __future__ import annotations

from typing import Final

_APPROXIMATE: Final = (
    "PostgreSQL has exact aggregates: use COUNT(DISTINCT …), PERCENTILE_CONT or SUM"
)
_BYTES: Final = (
    "the function counts bytes or code units of the source: use the function that counts characters"
)
_COLLECTION: Final = "nested tables: use an array or a separate table"
_CONTAINER: Final = "a function for containers (CDB), which PostgreSQL does not have"
_DOMAIN: Final = "a function for domains: use CREATE DOMAIN with a check, and your own function"
_DST: Final = "a function for versions of Oracle's time zone file"
_HIERARCHY: Final = "a function for analytic views: use a view with GROUP BY"
_MINING: Final = "data mining: do it in the application"
_MODEL: Final = "a function of MODEL: rewrite the query, or do it in the application"
_OBJECT: Final = (
    "a function for object types: use a foreign key, or a column that contains the type"
)
_OLAP: Final = "a function for analytic workspaces: use a view with GROUP BY or window functions"
_ROWID: Final = "ROWID: rows in PostgreSQL have no permanent address; use the key"
_SCN: Final = "PostgreSQL has no SCN: use a column with the time of the change"
_SORT: Final = "linguistic sorting: use COLLATE with a collation of PostgreSQL"
_STATISTICS: Final = "statistics: compute them in the application"
_UUID: Final = "a UUID as text or RAW: use the type uuid and GEN_RANDOM_UUID()"
_VECTOR: Final = "vectors: use the extension pgvector"
_XML_CHANGE: Final = "changes in an XML document: use XMLTABLE and XMLELEMENT, or the application"

REFUSED_FUNCTIONS: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            *("APPROX_COUNT", "APPROX_COUNT_DISTINCT_AGG", "APPROX_COUNT_DISTINCT_DETAIL"),
            *("APPROX_MEDIAN", "APPROX_PERCENTILE", "APPROX_PERCENTILE_AGG", "APPROX_RANK"),
            *("APPROX_PERCENTILE_DETAIL", "APPROX_SUM", "TO_APPROX_COUNT_DISTINCT"),
            "TO_APPROX_PERCENTILE",
        ),
        _APPROXIMATE,
    ),
    **dict.fromkeys(
        (
            *("INSTRB", "INSTRC", "INSTR2", "INSTR4", "LENGTHC", "LENGTH2", "LENGTH4"),
            *("SUBSTRB", "SUBSTRC", "SUBSTR2", "SUBSTR4"),
        ),
        _BYTES,
    ),
    **dict.fromkeys(
        ("CARDINALITY", "COLLECT", "POWERMULTISET", "POWERMULTISET_BY_CARDINALITY", "SET"),
        _COLLECTION,
    ),
    **dict.fromkeys(
        (
            *("CON_DBID_TO_ID", "CON_GUID_TO_ID", "CON_ID_TO_CON_NAME", "CON_ID_TO_DBID"),
            *("CON_ID_TO_GUID", "CON_ID_TO_UID", "CON_NAME_TO_ID", "CON_UID_TO_ID"),
        ),
        _CONTAINER,
    ),
    **dict.fromkeys(
        ("DOMAIN_CHECK", "DOMAIN_CHECK_TYPE", "DOMAIN_DISPLAY", "DOMAIN_NAME", "DOMAIN_ORDER"),
        _DOMAIN,
    ),
    **dict.fromkeys(("ORA_DST_AFFECTED", "ORA_DST_CONVERT", "ORA_DST_ERROR"), _DST),
    **dict.fromkeys(
        (
            *("CUBE_TABLE", "HIER_CAPTION", "HIER_CHILD_COUNT", "HIER_COLUMN", "HIER_DEPTH"),
            *("HIER_DESCRIPTION", "HIER_LAG", "HIER_LEAD", "HIER_LEVEL", "HIER_MEMBER_NAME"),
            *("HIER_MEMBER_UNIQUE_NAME", "HIER_PARENT", "HIER_HAS_CHILDREN", "HIER_ORDER"),
            "HIER_UNIQUE_MEMBER_NAME",
        ),
        _HIERARCHY,
    ),
    **dict.fromkeys(
        (
            *("CLUSTER_DETAILS", "CLUSTER_DISTANCE", "CLUSTER_ID", "CLUSTER_PROBABILITY"),
            *("CLUSTER_SET", "FEATURE_COMPARE", "FEATURE_DETAILS", "FEATURE_ID", "FEATURE_SET"),
            *("FEATURE_VALUE", "ORA_DM_PARTITION_NAME", "PREDICTION", "PREDICTION_BOUNDS"),
            *("PREDICTION_COST", "PREDICTION_DETAILS", "PREDICTION_PROBABILITY"),
            "PREDICTION_SET",
        ),
        _MINING,
    ),
    **dict.fromkeys(("CV", "ITERATION_NUMBER", "PRESENTNNV", "PRESENTV", "PREVIOUS"), _MODEL),
    **dict.fromkeys(
        ("DEREF", "MAKE_REF", "REF", "REFTOHEX", "SYS_TYPEID", "TREAT", "VALUE"), _OBJECT
    ),
    **dict.fromkeys(
        (
            *("CHARTOROWID", "DATAOBJ_TO_MAT_PARTITION", "DATAOBJ_TO_PARTITION", "ROWIDTOCHAR"),
            *("ROWIDTONCHAR", "SYS_OP_ZONE_ID"),
        ),
        _ROWID,
    ),
    **dict.fromkeys(("SCN_TO_TIMESTAMP", "TIMESTAMP_TO_SCN"), _SCN),
    **dict.fromkeys(("COLLATION", "NLSSORT", "NLS_COLLATION_ID", "NLS_COLLATION_NAME"), _SORT),
    **dict.fromkeys(
        (
            *("CORR_K", "CORR_S", "STATS_BINOMIAL_TEST", "STATS_CROSSTAB", "STATS_F_TEST"),
            *("KURTOSIS_POP", "KURTOSIS_SAMP", "SKEWNESS_POP", "SKEWNESS_SAMP"),
            *("STATS_KS_TEST", "STATS_MW_TEST", "STATS_ONE_WAY_ANOVA", "STATS_T_TEST_INDEP"),
            *("STATS_T_TEST_INDEPU", "STATS_T_TEST_ONE", "STATS_T_TEST_PAIRED", "STATS_WSR_TEST"),
        ),
        _STATISTICS,
    ),
    **dict.fromkeys(("IS_UUID", "RAW_TO_UUID", "UUID", "UUID_TO_RAW"), _UUID),
    **dict.fromkeys(
        (
            *("COSINE_DISTANCE", "FROM_VECTOR", "HAMMING_DISTANCE", "INNER_PRODUCT"),
            *("JACCARD_DISTANCE", "L1_DISTANCE", "L2_DISTANCE", "TO_VECTOR", "VECTOR"),
            *("VECTOR_CHUNKS", "VECTOR_DIMENSION_COUNT", "VECTOR_DIMENSION_FORMAT"),
            *("VECTOR_DIMS", "VECTOR_DISTANCE", "VECTOR_EMBEDDING", "VECTOR_NORM"),
            "VECTOR_SERIALIZE",
        ),
        _VECTOR,
    ),
    **dict.fromkeys(
        (
            *("APPENDCHILDXML", "DELETEXML", "INSERTCHILDXML", "INSERTCHILDXMLAFTER"),
            *("INSERTCHILDXMLBEFORE", "INSERTXMLAFTER", "INSERTXMLBEFORE", "UPDATEXML"),
            *("XMLDIFF", "XMLPATCH", "XMLTRANSFORM"),
        ),
        _XML_CHANGE,
    ),
    **dict.fromkeys(
        (
            "BITMAP_BIT_POSITION",
            "BITMAP_BUCKET_NUMBER",
            "BITMAP_CONSTRUCT_AGG",
            "BITMAP_COUNT",
            "BITMAP_OR_AGG",
        ),
        "a bitmap of distinct values: use COUNT(DISTINCT …)",
    ),
    **dict.fromkeys(
        ("BIT_AND_AGG", "BIT_OR_AGG", "BIT_XOR_AGG"),
        "an aggregate of bits: use BIT_AND, BIT_OR or BIT_XOR of a bigint",
    ),
    **dict.fromkeys(
        (
            "JSON_DATAGUIDE",
            "JSON_ID",
            "JSON_MERGEPATCH",
            "JSON_SCALAR",
            "JSON_SERIALIZE",
            "JSON_TRANSFORM",
            "JSON",
        ),
        "a function for JSON documents: use the operators and functions of jsonb",
    ),
    **dict.fromkeys(
        ("NLS_CHARSET_DECL_LEN", "NLS_CHARSET_ID", "NLS_CHARSET_NAME"),
        "a function for Oracle's character sets: a PostgreSQL database has only one",
    ),
    **dict.fromkeys(
        ("ASCIISTR", "CONVERT"),
        "character set conversion: use CONVERT_TO or TRANSLATE",
    ),
    **dict.fromkeys(("DEPTH", "PATH"), "a path in Oracle XML DB Repository: use a table of files"),
    **dict.fromkeys(
        (
            "SYS_DBURIGEN",
            "SYS_XMLAGG",
            "SYS_XMLGEN",
            "XMLCAST",
            "XMLCDATA",
            "XMLCOLATTVAL",
            "XMLCOMMENT",
            "XMLEXISTS",
            "XMLISVALID",
            "XMLPARSE",
            "XMLPI",
            "XMLQUERY",
            "XMLROOT",
            "XMLSEQUENCE",
            "XMLSERIALIZE",
        ),
        "a function for XML documents: use PostgreSQL's XMLTABLE, XPATH or XMLSERIALIZE",
    ),
    **dict.fromkeys(
        (
            *("OLAP_CONDITION", "OLAP_EXPRESSION", "OLAP_EXPRESSION_BOOL", "OLAP_EXPRESSION_DATE"),
            *("OLAP_EXPRESSION_TEXT", "OLAP_TABLE"),
        ),
        _OLAP,
    ),
    "BFILENAME": "a file outside the database: store its path or its content",
    "BIT_COMPLEMENT": "an undocumented function: use the operator ~ of integers",
    "BIT_OR": "an undocumented function: use the operator | of integers",
    "BIT_XOR": "an undocumented function: use the operator # of integers",
    "BOOL_TO_INT": "an undocumented function: use CASE WHEN … THEN 1 ELSE 0 END",
    "CHECKSUM": "a checksum of rows: use MD5 of an aggregate",
    "CONTAINS": "full-text search: use tsvector and @@",
    "DUMP": "the internal form of a value in Oracle, which PostgreSQL does not have",
    "FUZZY_MATCH": "fuzzy comparison: use the extensions pg_trgm and fuzzystrmatch",
    "GROUP_ID": "the number of a duplicate group: list each group only once",
    "ORA_HASH": "PostgreSQL's hash functions (HASHTEXT) return other numbers",
    "ORA_INVOKING_USER": "the invoking user: use SESSION_USER",
    "ORA_INVOKING_USERID": "the invoking user: use SESSION_USER",
    "PHONIC_ENCODE": "a phonetic code: use the extension fuzzystrmatch",
    "ROUND_TIES_TO_EVEN": "rounding to even: use ROUND of a double precision",
    "SHARD_CHUNK_ID": "a function for Oracle's sharding, which PostgreSQL does not have",
    "TIME_BUCKET": "time intervals: use DATE_BIN",
    "TO_BOOLEAN": "conversion to boolean: use CAST or CASE",
    "TO_LOB": "conversion of LONG to LOB: the column in PostgreSQL needs no conversion",
    "TO_UTC_TIMESTAMP_TZ": "a time in ISO 8601: use CAST AS TIMESTAMPTZ",
    "TZ_OFFSET": "the offset of a time zone: use pg_timezone_names",
    "USERENV": "use SYS_CONTEXT('USERENV', …)",
    "WM_CONCAT": "an undocumented function: use LISTAGG(…) WITHIN GROUP (ORDER BY …)",
}
"""For each function name: the function's purpose, and its replacement."""

REFUSED_FAMILIES: Final = {
    "CALENDAR_": "a calendar function of 26ai: use TO_CHAR, TRUNC, ADD_MONTHS or EXTRACT",
    "FISCAL_": "a fiscal calendar of 26ai: join a table with your calendar",
    "RETAIL_": "a retail calendar of 26ai: join a table with your calendar",
}
"""For each prefix of function names: the functions' purpose, and their replacement."""


def advice_of(name: str) -> str:
    """Return the purpose of a function and its replacement; an empty text if the function is
    unknown.
    """
    families = (text for prefix, text in REFUSED_FAMILIES.items() if name.startswith(prefix))
    return REFUSED_FUNCTIONS.get(name) or next(families, "")
