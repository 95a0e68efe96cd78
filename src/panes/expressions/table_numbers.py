# ruff: noqa: E501  (a line of the table is one line)
"""Lines of the function table about numbers, conditions and bits.

Functions that a C library and Java each approximate (`exp`, `sin`, ...) may differ in the last
digit of a double; all others are equal in every digit.
"""

MATHEMATICS = r"""
abs | integer | {0} | abs({0})
abs | fraction | {0} | abs({0})
abs | decimal | {0} | abs({0})
sign signum | double | double | CASE WHEN isnan({0}) THEN {0} WHEN {0} = 0 THEN {0} ELSE sign({0}) END
ceil ceiling | integer | bigint | {0}
ceil ceiling | fraction | bigint | CASE WHEN isnan({0}) THEN 0 ELSE CAST(ceil({0}) AS BIGINT) END
floor | integer | bigint | {0}
floor | fraction | bigint | CASE WHEN isnan({0}) THEN 0 ELSE CAST(floor({0}) AS BIGINT) END
sqrt | double | double | CASE WHEN {0} < 0 THEN 'nan'::DOUBLE ELSE sqrt({0}) END
exp | double | double | exp({0})
expm1 | double | double | CASE WHEN abs({0}) < 1 THEN 2 * exp({0} / 2) * sinh({0} / 2) ELSE exp({0}) - 1 END
ln | double | double | CASE WHEN {0} <= 0 THEN NULL ELSE ln({0}) END
log10 | double | double | CASE WHEN {0} <= 0 THEN NULL ELSE log10({0}) END
log2 | double | double | CASE WHEN {0} <= 0 THEN NULL ELSE ln({0}) / ln(2::DOUBLE) END
log1p | double | double | CASE WHEN {0} <= -1 THEN NULL WHEN 1 + {0} = 1 THEN {0} WHEN abs({0}) > 1 THEN ln(1 + {0}) ELSE ln(1 + {0}) * ({0} / ((1 + {0}) - 1)) END
log | double | double | CASE WHEN {0} <= 0 THEN NULL ELSE ln({0}) END
log | double, double | double | CASE WHEN {0} <= 0 OR {1} <= 0 THEN NULL ELSE ln({1}) / ln({0}) END
pow power | double, double | double | CASE WHEN isnan({1}) OR (isinf({1}) AND abs({0}) = 1) THEN 'nan'::DOUBLE + {0} ELSE pow({0}, {1}) END
cbrt | double | double | CASE WHEN {0} = 0 OR isnan({0}) OR isinf({0}) THEN {0} ELSE cbrt({0}) - (cbrt({0}) - {0} / (cbrt({0}) * cbrt({0}))) / 3 END
sin | double | double | CASE WHEN isinf({0}) THEN 'nan'::DOUBLE ELSE sin({0}) END
cos | double | double | CASE WHEN isinf({0}) THEN 'nan'::DOUBLE ELSE cos({0}) END
tan | double | double | CASE WHEN isinf({0}) THEN 'nan'::DOUBLE ELSE tan({0}) END
cot | double | double | CASE WHEN isinf({0}) THEN 'nan'::DOUBLE ELSE 1 / tan({0}) END
sec | double | double | CASE WHEN isinf({0}) THEN 'nan'::DOUBLE ELSE 1 / cos({0}) END
csc | double | double | CASE WHEN isinf({0}) THEN 'nan'::DOUBLE ELSE 1 / sin({0}) END
asin | double | double | CASE WHEN abs({0}) > 1 THEN 'nan'::DOUBLE ELSE asin({0}) END
acos | double | double | CASE WHEN abs({0}) > 1 THEN 'nan'::DOUBLE ELSE acos({0}) END
atan | double | double | atan({0})
atan2 | double, double | double | atan2({0} + 0, {1} + 0)
sinh | double | double | sinh({0})
cosh | double | double | cosh({0})
tanh | double | double | tanh({0})
degrees | double | double | degrees({0})
radians | double | double | radians({0})
pi | | double | pi()
e | | double | 2.718281828459045::DOUBLE
rint | double | double | CASE WHEN abs({0}) < 4503599627370496 THEN round_even({0}, 0) ELSE {0} END
positive | number | {0} | {0}
negative | number | {0} | -{0}
greatest | O, O, O* | O | greatest({all})
least | O, O, O* | O | least({all})
bit_count | bigint | int | bit_count({0})
bit_count | boolean | int | CAST({0} AS INTEGER)
bin | bigint | string | bin({0})
bin | decimal | string | bin(CAST(trunc({0}) AS BIGINT))
hex | bigint | string | hex({0})
hex | string | string | hex(encode({0}))
hex | binary | string | hex({0})
factorial | int | bigint | CASE WHEN {0} < 0 OR {0} > 20 THEN NULL ELSE factorial({0}) END
bit_get getbit | int, int | tinyint | CASE WHEN ({1} < 0 OR {1} > 31) AND {0} IS NOT NULL THEN error('a bit position is between 0 and 31')::BIGINT ELSE (CAST({0} AS BIGINT) >> {1}) & 1 END
bit_get getbit | bigint, int | tinyint | CASE WHEN ({1} < 0 OR {1} > 63) AND {0} IS NOT NULL THEN error('a bit position is between 0 and 63')::BIGINT ELSE ({0} >> {1}) & 1 END
bitmap_count | binary | bigint | CASE WHEN octet_length({0}) = 0 THEN 0 ELSE length(replace(list_aggregate(list_transform(string_split(hex({0}), ''), lambda c: bin(CAST('0x' || c AS INTEGER))), 'string_agg', ''), '0', '')) END
"""
CONDITIONS = """
coalesce | T, T* | T | coalesce({all})
nvl ifnull | T, T | T | coalesce({all})
nvl2 | any, T, T | T | CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END
nullifzero | number | {0} | CASE WHEN {0} = 0 THEN NULL ELSE {0} END
isnull | any | boolean | {0} IS NULL
isnotnull | any | boolean | {0} IS NOT NULL
isnan | double | boolean | coalesce(isnan({0}), false)
nanvl | double, double | double | CASE WHEN isnan({0}) THEN {1} ELSE {0} END
"""
