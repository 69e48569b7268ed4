"""Every function of Oracle's SQL Language Reference (12c to 26ai): translated, or refused by name.

The names are the headings of its chapter “Functions”, and those of public lists that others made
(`cases/function_names.json`: names, and where they stand). Of each that is translated there is an
example with the result that the documentation tells for it.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from olr_pg.schema.functions.refused_functions import REFUSED_FUNCTIONS
from olr_pg.schema.oracle_parser import REFUSED_WORDS
from olr_pg.schema.translating import UntranslatableError
from olr_pg.schema.translation import translate_query
from tests.schema.shop_relations import relations

DOCUMENTED: Final = tuple(
    """
ABS ACOS ADD_MONTHS ANY_VALUE APPENDCHILDXML APPROX_COUNT APPROX_COUNT_DISTINCT
APPROX_COUNT_DISTINCT_AGG APPROX_COUNT_DISTINCT_DETAIL APPROX_MEDIAN APPROX_PERCENTILE
APPROX_PERCENTILE_AGG APPROX_PERCENTILE_DETAIL APPROX_RANK APPROX_SUM ASCII ASCIISTR ASIN ATAN ATAN2
AVG BFILENAME BIN_TO_NUM BITAND BITMAP_BIT_POSITION BITMAP_BUCKET_NUMBER BITMAP_CONSTRUCT_AGG
BITMAP_COUNT BITMAP_OR_AGG BIT_AND_AGG BIT_OR_AGG BIT_XOR_AGG BOOLEAN_AND_AGG BOOLEAN_OR_AGG
CARDINALITY CAST CEIL CHARTOROWID CHECKSUM CHR CLUSTER_DETAILS CLUSTER_DISTANCE CLUSTER_ID
CLUSTER_PROBABILITY CLUSTER_SET COALESCE COLLATION COLLECT COMPOSE CONCAT CONVERT CON_DBID_TO_ID
CON_GUID_TO_ID CON_ID_TO_CON_NAME CON_ID_TO_DBID CON_ID_TO_GUID CON_ID_TO_UID CON_NAME_TO_ID
CON_UID_TO_ID CORR CORR_K CORR_S COS COSH COSINE_DISTANCE COUNT COVAR_POP COVAR_SAMP CUBE_TABLE
CUME_DIST CURRENT_DATE CURRENT_TIMESTAMP CV DATAOBJ_TO_MAT_PARTITION DATAOBJ_TO_PARTITION
DBTIMEZONE DECODE DECOMPOSE DELETEXML DENSE_RANK DEPTH DEREF DOMAIN_CHECK DOMAIN_CHECK_TYPE
DOMAIN_DISPLAY
DOMAIN_NAME DOMAIN_ORDER DUMP EMPTY_BLOB EMPTY_CLOB EVERY EXISTSNODE EXP EXTRACT EXTRACTVALUE
FEATURE_COMPARE FEATURE_DETAILS FEATURE_ID FEATURE_SET FEATURE_VALUE FIRST FIRST_VALUE FLOOR FROM_TZ
FROM_VECTOR FUZZY_MATCH GREATEST GROUPING GROUPING_ID GROUP_ID HAMMING_DISTANCE HEXTORAW
HIER_CAPTION HIER_CHILD_COUNT HIER_COLUMN HIER_DEPTH HIER_DESCRIPTION HIER_LAG HIER_LEAD HIER_LEVEL
HIER_MEMBER_NAME HIER_MEMBER_UNIQUE_NAME HIER_PARENT INITCAP INNER_PRODUCT INSERTCHILDXML
INSERTCHILDXMLAFTER INSERTCHILDXMLBEFORE INSERTXMLAFTER INSERTXMLBEFORE INSTR INSTR2 INSTR4 INSTRB
INSTRC IS_UUID ITERATION_NUMBER JACCARD_DISTANCE JSON JSON_ARRAY JSON_ARRAYAGG JSON_DATAGUIDE
JSON_EXISTS JSON_ID JSON_MERGEPATCH JSON_OBJECT JSON_OBJECTAGG JSON_QUERY JSON_SCALAR JSON_SERIALIZE
JSON_TABLE JSON_TRANSFORM JSON_VALUE KURTOSIS_POP KURTOSIS_SAMP L1_DISTANCE L2_DISTANCE LAG LAST
LAST_DAY LAST_VALUE LEAD LEAST LENGTH LENGTH2 LENGTH4 LENGTHB LENGTHC LISTAGG LN LNNVL
LOCALTIMESTAMP LOG LOWER LPAD LTRIM MAKE_REF MAX MEDIAN MIN MOD MONTHS_BETWEEN NANVL NCHR NEW_TIME
NEXT_DAY NLSSORT NLS_CHARSET_DECL_LEN NLS_CHARSET_ID NLS_CHARSET_NAME NLS_COLLATION_ID
NLS_COLLATION_NAME NLS_INITCAP NLS_LOWER NLS_UPPER NTH_VALUE NTILE NULLIF NUMTODSINTERVAL
NUMTOYMINTERVAL NVL NVL2 ORA_DM_PARTITION_NAME ORA_DST_AFFECTED ORA_DST_CONVERT ORA_DST_ERROR
ORA_HASH ORA_INVOKING_USER ORA_INVOKING_USERID PATH PERCENTILE_CONT PERCENTILE_DISC PERCENT_RANK
PHONIC_ENCODE POWER POWERMULTISET POWERMULTISET_BY_CARDINALITY PREDICTION PREDICTION_BOUNDS
PREDICTION_COST PREDICTION_DETAILS PREDICTION_PROBABILITY PREDICTION_SET PRESENTNNV PRESENTV
PREVIOUS RANK RATIO_TO_REPORT RAWTOHEX RAWTONHEX RAW_TO_UUID REF REFTOHEX REGEXP_COUNT REGEXP_INSTR
REGEXP_REPLACE REGEXP_SUBSTR REGR_AVGX REGR_AVGY REGR_COUNT REGR_INTERCEPT REGR_R2 REGR_SLOPE
REGR_SXX REGR_SXY REGR_SYY REMAINDER REPLACE ROUND ROUND_TIES_TO_EVEN ROWIDTOCHAR ROWIDTONCHAR
ROW_NUMBER RPAD RTRIM SCN_TO_TIMESTAMP SESSIONTIMEZONE SET SHARD_CHUNK_ID SIGN SIN SINH SKEWNESS_POP
SKEWNESS_SAMP SOUNDEX SQRT STANDARD_HASH STATS_BINOMIAL_TEST STATS_CROSSTAB STATS_F_TEST
STATS_KS_TEST STATS_MODE STATS_MW_TEST STATS_ONE_WAY_ANOVA STATS_T_TEST_INDEP STATS_T_TEST_INDEPU
STATS_T_TEST_ONE STATS_T_TEST_PAIRED STATS_WSR_TEST STDDEV STDDEV_POP STDDEV_SAMP SUBSTR SUBSTR2
SUBSTR4 SUBSTRB SUBSTRC SUM SYSDATE SYSTIMESTAMP SYS_CONNECT_BY_PATH SYS_CONTEXT SYS_DBURIGEN
SYS_EXTRACT_UTC SYS_GUID SYS_OP_ZONE_ID SYS_TYPEID SYS_XMLAGG SYS_XMLGEN TAN TANH TIMESTAMP_TO_SCN
TIME_BUCKET TO_APPROX_COUNT_DISTINCT TO_APPROX_PERCENTILE TO_BINARY_DOUBLE TO_BINARY_FLOAT TO_BLOB
TO_BOOLEAN TO_CHAR TO_CLOB TO_DATE TO_DSINTERVAL TO_LOB TO_MULTI_BYTE TO_NCHAR TO_NCLOB TO_NUMBER
TO_SINGLE_BYTE TO_TIMESTAMP TO_TIMESTAMP_TZ TO_UTC_TIMESTAMP_TZ TO_VECTOR TO_YMINTERVAL TRANSLATE
TREAT TRIM TRUNC TZ_OFFSET UID UNISTR UPDATEXML UPPER USER USERENV UUID UUID_TO_RAW
VALIDATE_CONVERSION VALUE VARIANCE VAR_POP VAR_SAMP VECTOR VECTOR_CHUNKS VECTOR_DIMENSION_COUNT
VECTOR_DIMENSION_FORMAT VECTOR_DIMS VECTOR_DISTANCE VECTOR_EMBEDDING VECTOR_NORM VECTOR_SERIALIZE
VSIZE WIDTH_BUCKET XMLAGG XMLCAST XMLCDATA XMLCOLATTVAL XMLCOMMENT XMLCONCAT XMLDIFF XMLELEMENT
XMLEXISTS XMLFOREST XMLISVALID XMLPARSE XMLPATCH XMLPI XMLQUERY XMLROOT XMLSEQUENCE XMLSERIALIZE
XMLTABLE XMLTRANSFORM
""".split()  # noqa: SIM905 - a list of words reads better
)

ELSEWHERE: Final = frozenset(
    {
        *("JSON_ARRAY", "JSON_ARRAYAGG", "JSON_EXISTS", "JSON_OBJECT", "JSON_OBJECTAGG"),
        *("JSON_QUERY", "JSON_TABLE", "JSON_VALUE", "EXISTSNODE", "EXTRACTVALUE", "XMLAGG"),
        *("XMLCONCAT", "XMLELEMENT", "XMLFOREST", "XMLTABLE", "SYS_CONNECT_BY_PATH"),
    }
)
"""Their tests are `test_document_functions` and `test_queries`."""

UNREADABLE: Final = frozenset({"SET"})
"""The parser says why."""

EXAMPLES: Final[dict[str, tuple[str, Any]]] = {
    "ABS": ("ABS(-15)", 15),
    "ACOS": ("ACOS(.3)", "1.26610367277949"),
    "ADD_MONTHS": ("ADD_MONTHS(DATE '2008-02-29', 12)", "2009-02-28 00:00:00"),
    "ANY_VALUE": ("ANY_VALUE(i)", 7),
    "APPROX_COUNT_DISTINCT": ("APPROX_COUNT_DISTINCT(i)", 1),
    "ASCII": ("ASCII('A')", 65),
    "ASIN": ("ASIN(.3)", "0.304692654015397"),
    "ATAN": ("ATAN(.3)", "0.291456794477867"),
    "ATAN2": ("ATAN2(.3, .2)", "0.982793723247329"),
    "AVG": ("AVG(i)", 7),
    "BIN_TO_NUM": ("BIN_TO_NUM(1,0,1,0)", 10),
    "BITAND": ("BITAND(6,3)", 2),
    "BOOLEAN_AND_AGG": ("CASE WHEN BOOLEAN_AND_AGG(i > 1) THEN 1 ELSE 0 END", 1),
    "BOOLEAN_OR_AGG": ("CASE WHEN BOOLEAN_OR_AGG(i > 9) THEN 1 ELSE 0 END", 0),
    "CAST": ("CAST('22-OCT' AS VARCHAR2(3))", "22-"),
    "CEIL": ("CEIL(268651.8)", 268652),
    "CHR": ("CHR(67)||CHR(65)||CHR(84)", "CAT"),
    "COALESCE": ("COALESCE(NULL, 0.9, 5)", "0.9"),
    "COMPOSE": ("COMPOSE('o' || UNISTR('\\0308'))", "\u00f6"),
    "CONCAT": ("CONCAT(CONCAT('Hall', '''s job category is '), 'SA_REP')",
               "Hall's job category is SA_REP"),
    "CORR": ("CORR(i, n)", None),
    "COS": ("COS(180 * 3.14159265359/180)", -1),
    "COSH": ("COSH(0)", 1),
    "COUNT": ("COUNT(*)", 1),
    "COVAR_POP": ("COVAR_POP(i, n)", 0),
    "COVAR_SAMP": ("COVAR_SAMP(i, n)", None),
    "CUME_DIST": ("CUME_DIST() OVER (ORDER BY i)", 1),
    "CURRENT_DATE": ("TRUNC(CURRENT_DATE) - TRUNC(SYSDATE)", 0),
    "CURRENT_TIMESTAMP": ("CASE WHEN CURRENT_TIMESTAMP = SYSTIMESTAMP THEN 1 END", 1),
    "DECOMPOSE": ("LENGTH(DECOMPOSE('ö'))", 2),
    "DECODE": ("DECODE(2, 1, 'Southlake', 2, 'San Francisco', 'Non domestic')", "San Francisco"),
    "DENSE_RANK": ("DENSE_RANK() OVER (ORDER BY i)", 1),
    "EMPTY_BLOB": ("LENGTH(RAWTOHEX(EMPTY_BLOB()))", 0),
    "EMPTY_CLOB": ("LENGTH(EMPTY_CLOB())", 0),
    "EVERY": ("CASE WHEN EVERY(i > 1) THEN 1 ELSE 0 END", 1),
    "EXP": ("EXP(4)", "54.598150033144236"),
    "EXTRACT": ("EXTRACT(YEAR FROM DATE '1998-03-07')", 1998),
    "FIRST": ("MIN(i) KEEP (DENSE_RANK FIRST ORDER BY d)", 7),
    "FIRST_VALUE": ("FIRST_VALUE(a) OVER (ORDER BY i)", "Oracle Corp"),
    "FLOOR": ("FLOOR(15.7)", 15),
    "FROM_TZ": (("TO_CHAR(FROM_TZ(TIMESTAMP '2000-03-28 08:00:00', '3:00') AT TIME ZONE 'UTC',"
                " 'HH24:MI')"), "05:00"),
    "GREATEST": ("GREATEST('HARRY', 'HARRIOT', 'HAROLD')", "HARRY"),
    "GROUPING": ("GROUPING(b)", 0),
    "GROUPING_ID": ("GROUPING_ID(b)", 0),
    "HEXTORAW": ("RAWTOHEX(HEXTORAW('7D'))", "7D"),
    "INITCAP": ("INITCAP('the soap')", "The Soap"),
    "INSTR": ("INSTR('CORPORATE FLOOR','OR', -3, 2)", 2),
    "LAG": ("LAG(i, 1, 0) OVER (ORDER BY i)", 0),
    "LAST": ("MAX(i) KEEP (DENSE_RANK LAST ORDER BY d)", 7),
    "LAST_DAY": ("LAST_DAY(DATE '2009-02-02') - DATE '2009-02-02'", 26),
    "LAST_VALUE": ("LAST_VALUE(i) OVER (ORDER BY i)", 7),
    "LEAD": ("LEAD(i) OVER (ORDER BY i)", None),
    "LEAST": ("LEAST('HARRY','HARRIOT','HAROLD')", "HAROLD"),
    "LENGTH": ("LENGTH('CANDIDE')", 7),
    "LENGTHB": ("LENGTHB('CANDIDE')", 7),
    "LISTAGG": ("LISTAGG(b, '; ') WITHIN GROUP (ORDER BY i)", "x"),
    "LN": ("LN(95)", "4.553876891600541"),
    "LNNVL": ("CASE WHEN LNNVL(i > 9) THEN 1 ELSE 0 END", 1),
    "LOCALTIMESTAMP": ("TRUNC(LOCALTIMESTAMP) - TRUNC(SYSDATE)", 0),
    "LOG": ("LOG(10,100)", 2),
    "LOWER": ("LOWER('MR. SCOTT MCMILLAN')", "mr. scott mcmillan"),
    "LPAD": ("LPAD('Page 1',15,'*.')", "*.*.*.*.*Page 1"),
    "LTRIM": ("LTRIM('<=====>BROWNING<=====>', '<>=')", "BROWNING<=====>"),
    "MAX": ("MAX(i)", 7),
    "MEDIAN": ("MEDIAN(i)", 7),
    "MIN": ("MIN(i)", 7),
    "MOD": ("MOD(11,4)", 3),
    "MONTHS_BETWEEN": ("MONTHS_BETWEEN(DATE '1995-02-02', DATE '1995-01-01')", "1.03225806451613"),
    "NANVL": ("NANVL(1, 0)", 1),
    "NCHR": ("NCHR(187)", "»"),
    "NEW_TIME": (("NEW_TIME(TO_DATE('2009-11-10 01:23:45', 'YYYY-MM-DD HH24:MI:SS'),"
                 " 'AST', 'PST')"), "2009-11-09 21:23:45"),
    "NEXT_DAY": ("NEXT_DAY(DATE '2009-10-15', 'TUESDAY')", "2009-10-20 00:00:00"),
    "NLS_INITCAP": ("NLS_INITCAP('ijsland')", "Ijsland"),
    "NLS_LOWER": ("NLS_LOWER('NOKTASINDA')", "noktasinda"),
    "NLS_UPPER": ("NLS_UPPER('large')", "LARGE"),
    "NTH_VALUE": ("NTH_VALUE(i, 2) OVER (ORDER BY i)", None),
    "NTILE": ("NTILE(4) OVER (ORDER BY i)", 1),
    "NULLIF": ("NULLIF(i, 7)", None),
    "NUMTODSINTERVAL": ("DATE '2026-01-01' + NUMTODSINTERVAL(100, 'MINUTE')",
                        "2026-01-01 01:40:00"),
    "NUMTOYMINTERVAL": ("DATE '2026-01-01' + NUMTOYMINTERVAL(1, 'year')", "2027-01-01 00:00:00"),
    "NVL": ("NVL(TO_CHAR(NULL), 'Not Applicable')", "Not Applicable"),
    "NVL2": ("NVL2(b, 'income', 'none')", "income"),
    "PERCENTILE_CONT": ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY i DESC)", 7),
    "PERCENTILE_DISC": ("PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY i DESC)", 7),
    "PERCENT_RANK": ("PERCENT_RANK() OVER (ORDER BY i)", 0),
    "POWER": ("POWER(3,2)", 9),
    "RANK": ("RANK() OVER (ORDER BY i)", 1),
    "RATIO_TO_REPORT": ("RATIO_TO_REPORT(i) OVER ()", 1),
    "RAWTOHEX": ("RAWTOHEX(r)", "00FF"),
    "RAWTONHEX": ("RAWTONHEX(r)", "00FF"),
    "REGEXP_COUNT": ("REGEXP_COUNT('123123123123123', '(12)3', 1, 'i')", 5),
    "REGEXP_INSTR": ("REGEXP_INSTR('500 Oracle Parkway, Redwood Shores, CA','[^ ]+', 1, 6)", 37),
    "REGEXP_REPLACE": ("REGEXP_REPLACE('500   Oracle     Parkway,    Redwood','( ){2,}', ' ')",
                       "500 Oracle Parkway, Redwood"),
    "REGEXP_SUBSTR": ("REGEXP_SUBSTR('500 Oracle Parkway, Redwood Shores, CA',',[^,]+,')",
                      ", Redwood Shores,"),
    "REGR_AVGX": ("REGR_AVGX(i, n)", "0.5"),
    "REGR_AVGY": ("REGR_AVGY(i, n)", 7),
    "REGR_COUNT": ("REGR_COUNT(i, n)", 1),
    "REGR_INTERCEPT": ("REGR_INTERCEPT(i, n)", None),
    "REGR_R2": ("REGR_R2(i, n)", None),
    "REGR_SLOPE": ("REGR_SLOPE(i, n)", None),
    "REGR_SXX": ("REGR_SXX(i, n)", 0),
    "REGR_SXY": ("REGR_SXY(i, n)", 0),
    "REGR_SYY": ("REGR_SYY(i, n)", 0),
    "REMAINDER": ("REMAINDER(11, 4)", -1),
    "REPLACE": ("REPLACE('JACK and JUE','J','BL')", "BLACK and BLUE"),
    "ROUND": ("ROUND(15.193,1)", "15.2"),
    "ROW_NUMBER": ("ROW_NUMBER() OVER (ORDER BY i)", 1),
    "RPAD": ("RPAD('MORRISON',12,'ab')", "MORRISONabab"),
    "RTRIM": ("RTRIM('<=====>BROWNING<=====>', '<>=')", "<=====>BROWNING"),
    "SESSIONTIMEZONE": ("CASE WHEN SESSIONTIMEZONE IS NULL THEN 0 ELSE 1 END", 1),
    "SIGN": ("SIGN(-15)", -1),
    "SIN": ("SIN(30 * 3.14159265359/180)", "0.5"),
    "SINH": ("SINH(1)", "1.17520119364380"),
    "SOUNDEX": ("SOUNDEX('SMYTHE')", "S530"),
    "SQRT": ("SQRT(26)", "5.0990195135927849"),
    "STANDARD_HASH": ("RAWTOHEX(STANDARD_HASH('a', 'MD5'))", "0CC175B9C0F1B6A831C399E269772661"),
    "STATS_MODE": ("STATS_MODE(i)", 7),
    "STDDEV": ("STDDEV(i)", 0),
    "STDDEV_POP": ("STDDEV_POP(i)", 0),
    "STDDEV_SAMP": ("STDDEV_SAMP(i)", None),
    "SUBSTR": ("SUBSTR('ABCDEFG',-5,4)", "CDEF"),
    "SUM": ("SUM(i)", 7),
    "SYSDATE": ("SYSDATE - SYSDATE", 0),
    "SYSTIMESTAMP": ("CASE WHEN SYSTIMESTAMP IS NULL THEN 0 ELSE 1 END", 1),
    "SYS_CONTEXT": ("CASE WHEN SYS_CONTEXT('USERENV', 'SESSION_USER') = USER THEN 1 END", 1),
    "SYS_EXTRACT_UTC": (("TO_CHAR(SYS_EXTRACT_UTC(TIMESTAMP '2000-03-28 11:30:00.00 -08:00'),"
                        " 'HH24:MI')"), "19:30"),
    "SYS_GUID": ("LENGTH(RAWTOHEX(SYS_GUID()))", 32),
    "TAN": ("TAN(135 * 3.14159265359/180)", -1),
    "TANH": ("TANH(.5)", "0.462117157260010"),
    "TO_BINARY_DOUBLE": ("TO_BINARY_DOUBLE(1.5) + 1", "2.5"),
    "TO_BINARY_FLOAT": ("TO_BINARY_FLOAT(1.5) + 1", "2.5"),
    "TO_BLOB": ("RAWTOHEX(TO_BLOB(r))", "00FF"),
    "TO_CHAR": ("TO_CHAR(-10000,'99G999D99MI')", "10,000.00-"),
    "TO_CLOB": ("TO_CLOB(a)", "Oracle Corp"),
    "TO_DATE": ("TO_DATE('January 15, 1989, 11:00 A.M.', 'Month dd, YYYY, HH:MI A.M.')",
                "1989-01-15 11:00:00"),
    "TO_DSINTERVAL": ("DATE '2026-01-01' + TO_DSINTERVAL('100 00:00:00')", "2026-04-11 00:00:00"),
    "TO_MULTI_BYTE": ("TO_MULTI_BYTE('A')", "\uff21"),
    "TO_NCHAR": ("TO_NCHAR(a)", "Oracle Corp"),
    "TO_NCLOB": ("TO_NCLOB(a)", "Oracle Corp"),
    "TO_NUMBER": ("TO_NUMBER('100.00', '9G999D99')", 100),
    "TO_SINGLE_BYTE": ("TO_SINGLE_BYTE(CHR(15711393))", "A"),
    "TO_TIMESTAMP": ("TO_TIMESTAMP('2002-09-10 14:10:10', 'YYYY-MM-DD HH24:MI:SS')",
                     "2002-09-10 14:10:10"),
    "TO_TIMESTAMP_TZ": (("TO_CHAR(TO_TIMESTAMP_TZ('1999-12-01 11:00:00 -8:00',"
                        " 'YYYY-MM-DD HH:MI:SS TZH:TZM') AT TIME ZONE 'UTC', 'HH24:MI')"), "19:00"),
    "TO_YMINTERVAL": ("DATE '2026-01-01' + TO_YMINTERVAL('01-02')", "2027-03-01 00:00:00"),
    "TRANSLATE": ("TRANSLATE('SQL*Plus User''s Guide', ' */''', '___')", "SQL_Plus_Users_Guide"),
    "TRIM": ("TRIM(LEADING 0 FROM '0009872348900')", "9872348900"),
    "TRUNC": ("TRUNC(15.79,-1)", 10),
    "UNISTR": ("UNISTR('abc\\00e5\\00f1\\00f6')", "abcåñö"),
    "UPPER": ("UPPER('large')", "LARGE"),
    "USER": ("CASE WHEN USER IS NULL THEN 0 ELSE 1 END", 1),
    "VALIDATE_CONVERSION": ("VALIDATE_CONVERSION('$29.99' AS NUMBER)", 0),
    "VARIANCE": ("VARIANCE(i)", 0),
    "VAR_POP": ("VAR_POP(i)", 0),
    "VAR_SAMP": ("VAR_SAMP(i)", None),
    "VSIZE": ("VSIZE('abc')", 3),
    "WIDTH_BUCKET": ("WIDTH_BUCKET(5.35, 0.024, 10.06, 5)", 3),
}  # fmt: skip
"""Name → an example, in one row of the shop, and what it gives."""

_NAMES: Final = Path(__file__).parents[1] / "cases" / "function_names.json"
LISTED_BY_OTHERS: Final = frozenset(
    name
    for lines in json.loads(_NAMES.read_text("utf-8")).values()
    for line in lines
    for name in line.split()
)
NO_FUNCTIONS: Final = {
    "CASE": "an expression",
    "CONNECT_BY_ROOT": "an operator; `test_queries` has it",
    "DBTMEZONE": "a slip for DBTIMEZONE",
    "LATERAL": "of FROM",
    "NCGR": "a slip for NCHR",
    "ROW_COUNT": "of another database",
    "SYSTEMDATE": "of another database",
    "XMLATTRIBUTES": "a clause of XMLELEMENT; `test_document_functions` has it",
}
"""What stands in those lists, and is no function of Oracle."""

_GROUPED: Final = re.compile(r"\bGROUPING")


def test_every_function_is_listed_once() -> None:
    refused = {*REFUSED_FUNCTIONS, *REFUSED_WORDS}
    known = {*EXAMPLES, *ELSEWHERE}
    assert [name for name in DOCUMENTED if name not in known | refused] == []
    assert sorted(known & refused) == []
    assert sorted(known - {*DOCUMENTED}) == []
    others = {*LISTED_BY_OTHERS, "CONTAINS"}
    assert sorted({*REFUSED_FUNCTIONS} - {*DOCUMENTED} - others) == []


def test_what_others_list_is_translated_or_refused_by_name() -> None:
    known = {*EXAMPLES, *ELSEWHERE, *REFUSED_FUNCTIONS, *REFUSED_WORDS}
    assert len(LISTED_BY_OTHERS) > 300
    assert sorted(LISTED_BY_OTHERS - known) == sorted(NO_FUNCTIONS)


@pytest.mark.parametrize("name", NO_FUNCTIONS)
def test_what_is_no_function_is_not_called(name: str) -> None:
    with pytest.raises(UntranslatableError):
        translate_query(f"SELECT {name}(a) x FROM t", relations(), "SHOP")


def _same(found: Any, expected: Any) -> bool:
    if found is None or expected is None:
        return found is expected
    if str(found) == str(expected):
        return True
    try:
        return abs(Decimal(str(found)) - Decimal(str(expected))) < Decimal("1e-10")
    except InvalidOperation:
        return False


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_the_documentation(name: str, sample: psycopg.Connection[Any]) -> None:
    text, expected = EXAMPLES[name]
    group = " GROUP BY b" if _GROUPED.search(text) else ""
    query, _ = translate_query(f"SELECT {text} x FROM t WHERE i = 7{group}", relations(), "SHOP")
    with sample.transaction(force_rollback=True):
        ((found,),) = sample.execute(query.encode()).fetchall()
    assert _same(found, expected), (found, query)


@pytest.mark.parametrize("name", ["CALENDAR_YEAR", "FISCAL_ADD_MONTHS", "RETAIL_WEEK_OF_YEAR"])
def test_the_functions_of_calendars_are_refused_with_advice(name: str) -> None:
    with pytest.raises(UntranslatableError, match=f"{name}: a .* of 26ai: "):
        translate_query(f"SELECT {name}(d) x FROM t", relations(), "SHOP")


@pytest.mark.parametrize("name", REFUSED_FUNCTIONS)
def test_what_has_no_like_is_refused_with_advice(name: str) -> None:
    with pytest.raises(UntranslatableError) as caught:
        translate_query(f"SELECT {name}(a) x FROM t", relations(), "SHOP")
    if name in UNREADABLE:
        return
    assert name in str(caught.value)
    assert REFUSED_FUNCTIONS[name] in str(caught.value)
