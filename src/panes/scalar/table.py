"""The functions that mean in this process what they mean in Spark: one line each.

How a line is read is said in `panes.scalar.rules`. A line is here because tests have found no
difference: every example of Spark's own documentation, and random values of its types.
"""

from __future__ import annotations

from collections.abc import Iterable

from panes.scalar.rules import Rule

_DATES = """
year | date | int | year({0})
quarter | date | int | quarter({0})
month | date | int | month({0})
day dayofmonth | date | int | day({0})
dayofweek | date | int | dayofweek({0}) + 1
dayofyear | date | int | dayofyear({0})
weekday | date | int | isodow({0}) - 1
weekofyear | date | int | weekofyear({0})
hour | moment | int | hour({0})
minute | moment | int | minute({0})
second | moment | int | second({0})
hour | string | int | hour(CAST({0} AS TIMESTAMP))
minute | string | int | minute(CAST({0} AS TIMESTAMP))
second | string | int | second(CAST({0} AS TIMESTAMP))
dayname | date | string | left(dayname({0}), 3)
monthname | date | string | left(monthname({0}), 3)
last_day | date | date | last_day({0})
date_add dateadd | date, int | date | {0} + {1}
date_sub | date, int | date | {0} - {1}
datediff date_diff | date, date | int | {0} - {1}
add_months | date, int | date | CASE WHEN {1} IS NULL OR {0} IS NULL THEN NULL ELSE {0} + to_months({1}) END
make_date | int, int, int | date | make_date({0}, {1}, {2})
date_from_unix_date | int | date | DATE '1970-01-01' + {0}
unix_date | date | int | {0} - DATE '1970-01-01'
unix_micros | timestamp | bigint | epoch_us({0})
unix_millis | timestamp | bigint | floor(epoch_us({0}) / 1000::DOUBLE)
unix_seconds | timestamp | bigint | floor(epoch_us({0}) / 1000000::DOUBLE)
timestamp_micros | bigint | timestamp | make_timestamptz({0})
timestamp_millis | bigint | timestamp | make_timestamptz({0} * 1000)
timestamp_seconds | bigint | timestamp | make_timestamptz({0} * 1000000)
date | date | date | {0}
to_date | date | date | {0}
"""
_MATHEMATICS = """
abs | integer | {0} | abs({0})
abs | fraction | {0} | abs({0})
abs | decimal | {0} | abs({0})
sign signum | double | double | sign({0})
ceil ceiling | integer | bigint | {0}
ceil ceiling | fraction | bigint | ceil({0})
floor | integer | bigint | {0}
floor | fraction | bigint | floor({0})
sqrt | double | double | CASE WHEN {0} < 0 THEN 'nan'::DOUBLE ELSE sqrt({0}) END
exp | double | double | exp({0})
expm1 | double | double | exp({0}) - 1
ln | double | double | CASE WHEN {0} <= 0 THEN NULL ELSE ln({0}) END
log10 | double | double | CASE WHEN {0} <= 0 THEN NULL ELSE log10({0}) END
log2 | double | double | CASE WHEN {0} <= 0 THEN NULL ELSE log2({0}) END
log | double | double | CASE WHEN {0} <= 0 THEN NULL ELSE ln({0}) END
pow power | double, double | double | pow({0}, {1})
sin | double | double | sin({0})
cos | double | double | cos({0})
tan | double | double | tan({0})
cot | double | double | 1 / tan({0})
asin | double | double | CASE WHEN abs({0}) > 1 THEN 'nan'::DOUBLE ELSE asin({0}) END
acos | double | double | CASE WHEN abs({0}) > 1 THEN 'nan'::DOUBLE ELSE acos({0}) END
atan | double | double | atan({0})
atan2 | double, double | double | atan2({0}, {1})
sinh | double | double | sinh({0})
cosh | double | double | cosh({0})
tanh | double | double | tanh({0})
degrees | double | double | degrees({0})
radians | double | double | radians({0})
pi | | double | pi()
e | | double | exp(1)
hypot | double, double | double | sqrt({0} * {0} + {1} * {1})
rint | double | double | round_even({0}, 0)
positive | number | {0} | {0}
negative | number | {0} | -{0}
mod | T, T | T | {0} % {1}
pmod | integer, integer | bigint | (({0} % {1}) + {1}) % {1}
greatest | T, T, T* | T | greatest({all})
least | T, T, T* | T | least({all})
bit_count | bigint | int | bit_count({0})
bin | bigint | string | bin({0})
factorial | int | bigint | CASE WHEN {0} < 0 OR {0} > 20 THEN NULL ELSE factorial({0}) END
shiftleft | int, int | int | CAST((CAST({0} AS BIGINT) << ({1} & 31)) AS INTEGER)
"""
_CONDITIONS = """
coalesce | T, T* | T | coalesce({all})
nvl ifnull | T, T | T | coalesce({all})
nvl2 | any, T, T | T | CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END
nullif | T, T | T | nullif({0}, {1})
nullifzero | number | {0} | CASE WHEN {0} = 0 THEN NULL ELSE {0} END
zeroifnull | number | {0} | coalesce({0}, 0)
isnull | any | boolean | {0} IS NULL
isnotnull | any | boolean | {0} IS NOT NULL
isnan | double | boolean | coalesce(isnan({0}), false)
nanvl | double, double | double | CASE WHEN isnan({0}) THEN {1} ELSE {0} END
equal_null | T, T | boolean | {0} IS NOT DISTINCT FROM {1}
"""
_TEXT = """
upper ucase | string | string | upper({0})
lower lcase | string | string | lower({0})
length len char_length character_length | string | int | length({0})
length len octet_length | binary | int | octet_length({0})
octet_length | string | int | octet_length(encode({0}))
bit_length | string | int | 8 * octet_length(encode({0}))
bit_length | binary | int | 8 * octet_length({0})
reverse | string | string | reverse({0})
reverse | array<T> | array<T> | list_reverse({0})
ascii | string | int | CASE WHEN {0} = '' THEN 0 ELSE unicode({0}) END
trim | string | string | trim({0}, ' ')
ltrim | string | string | ltrim({0}, ' ')
rtrim | string | string | rtrim({0}, ' ')
btrim | string | string | trim({0}, ' ')
btrim | string, string | string | trim({0}, {1})
contains | string, string | boolean | contains({0}, {1})
startswith | string, string | boolean | starts_with({0}, {1})
endswith | string, string | boolean | ends_with({0}, {1})
replace | string, string, string | string | CASE WHEN {1} = '' THEN {0} ELSE replace({0}, {1}, {2}) END
replace | string, string | string | CASE WHEN {1} = '' THEN {0} ELSE replace({0}, {1}, '') END
concat | string, string* | string | concat_ws('', {all}) || CASE WHEN least({all}) IS NULL THEN NULL ELSE '' END
left | string, int | string | CASE WHEN {1} <= 0 THEN left({0}, 0) ELSE left({0}, {1}) END
right | string, int | string | CASE WHEN {1} <= 0 THEN left({0}, 0) ELSE right({0}, {1}) END
repeat | string, int | string | repeat({0}, greatest({1}, 0))
space | int | string | repeat(' ', greatest({0}, 0))
instr | string, string | int | instr({0}, {1})
locate position | string, string | int | instr({1}, {0})
levenshtein | string, string | int | levenshtein({0}, {1})
hex | string | string | hex(encode({0}))
hex | binary | string | hex({0})
unhex | string | binary | unhex({0})
base64 | binary | string | base64({0})
base64 | string | string | base64(encode({0}))
unbase64 | string | binary | from_base64({0})
md5 | string | string | md5({0})
md5 | binary | string | md5({0})
sha sha1 | string | string | sha1({0})
sha sha1 | binary | string | sha1({0})
"""
_COLLECTIONS = """
array | T* | array<T> | [{all}]
size cardinality | array | int | len({0})
array_size | array | int | len({0})
array_max | array<T> | T | list_max({0})
array_min | array<T> | T | list_min({0})
array_contains | array<T>, T | boolean | CASE WHEN {1} IS NULL THEN NULL WHEN list_contains({0}, {1}) THEN true WHEN len({0}) <> list_count({0}) THEN NULL WHEN {0} IS NULL THEN NULL ELSE false END
array_position | array<T>, T | bigint | CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE coalesce(list_position({0}, {1}), 0) END
array_append | array<T>, T | array<T> | CASE WHEN {0} IS NOT NULL THEN list_append({0}, {1}) END
array_prepend | array<T>, T | array<T> | CASE WHEN {0} IS NOT NULL THEN list_prepend({1}, {0}) END
map_keys | map | {0} | map_keys({0})
"""
_CONVERSIONS = """
typeof | any | string | {0}
string | string | string | {0}
int | int | int | {0}
"""


def _rules(*parts: str) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for line in _lines(parts):
        rule = Rule.parse(line)
        for name in rule.names:
            found.setdefault(name, []).append(rule)
    return found


def _lines(parts: Iterable[str]) -> Iterable[str]:
    for part in parts:
        yield from (line for line in part.strip().splitlines() if line)


RULES = _rules(_DATES, _MATHEMATICS, _CONDITIONS, _TEXT, _COLLECTIONS)
