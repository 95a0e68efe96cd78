"""Each function says how its result and its time grow; what multiplies is measured before."""

from __future__ import annotations

import pytest

import panes
from panes.errors import PanesError, QueryError
from panes.expressions.sizes import LOOKING, MAKING, PATTERNS
from panes.language.functions import SCALARS
from tests.expressions.long_values import BOMBS, EXPLODING, LONG, PLAIN, SHORT, WRITTEN

_STATED = "repeat lpad rpad space array_repeat sequence printf format_string"
STATED = frozenset(_STATED.split())
"""Functions whose result is as long as an argument says, which is a constant: `language.growth`."""

_ADDING = """
    abs acos acosh add_months aes_decrypt aggregate array array_append array_compact
    array_contains array_insert array_max array_min array_position array_prepend array_remove
    array_size array_sort arrays_zip ascii asin asinh atan atan2 atanh base64 bigint bin binary
    bit_count bit_get bit_length bitmap_bit_position bitmap_bucket_number bitmap_count boolean
    bround btrim byte cardinality cbrt ceil ceiling char char_length character_length chr
    coalesce collate collation concat conv convert_timezone cos cosh cot crc32 csc date date_add
    date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff
    datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees double e
    element_at elt encode endswith equal_null exists exp expm1 factorial filter flatten float
    floor forall format_number from_base32 from_csv from_json from_unixtime from_utc_timestamp
    get get_json_object getbit greatest hash hex hll_sketch_estimate hll_union hmac hour hypot
    ifnull ilike initcap int integer is_valid_utf8 isnan isnotnull isnull json_array_length
    json_object_keys last_day lcase least left len length like ln log log10 log1p log2 long
    lower ltrim luhn_check make_date make_dt_interval make_interval make_time make_timestamp
    make_timestamp_ltz make_timestamp_ntz make_valid_utf8 make_ym_interval map map_concat
    map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values
    mask md5 minute mod month monthname months_between named_struct nanvl negative next_day
    nullif nullifzero nvl nvl2 octet_length overlay parse_url pi pmod positive pow power quarter
    quote radians real reduce reverse right rint round rtrim schema_of_csv schema_of_json sec
    second sentences sha sha1 sha2 shiftleft shiftright shiftrightunsigned short sign signum sin
    sinh size slice smallint sort_array soundex sqrt startswith string struct substr substring
    tan tanh theta_difference theta_intersection theta_sketch_estimate theta_union time
    time_bucket time_diff time_from_micros time_from_millis time_from_seconds time_to_micros
    time_to_millis time_to_seconds time_trunc timestamp timestamp_ltz timestamp_micros
    timestamp_millis timestamp_nanos timestamp_ntz timestamp_seconds timestampadd timestampdiff
    tinyint to_base32 to_binary to_char to_csv to_date to_json to_number to_time to_timestamp
    to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar trim trunc
    try_add try_aes_decrypt try_divide try_element_at try_make_interval try_make_timestamp
    try_make_timestamp_ltz try_make_timestamp_ntz try_mod try_multiply try_parse_url
    try_subtract try_to_binary try_to_date try_to_number try_to_time try_to_timestamp
    try_url_decode try_validate_utf8 tuple_difference_double tuple_difference_integer
    tuple_difference_theta_double tuple_difference_theta_integer tuple_intersection_double
    tuple_intersection_integer tuple_intersection_theta_double tuple_intersection_theta_integer
    tuple_sketch_estimate_double tuple_sketch_estimate_integer tuple_sketch_summary_double
    tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer
    tuple_union_double tuple_union_integer tuple_union_theta_double tuple_union_theta_integer
    typeof ucase unbase64 unhex unix_date unix_micros unix_millis unix_nanos unix_seconds
    unix_timestamp upper url_decode url_encode validate_utf8 weekday weekofyear width_bucket
    xxhash64 year zeroifnull
"""
ADDING = frozenset(_ADDING.split())
"""All others: the result is of one size, or at most a few times as long as all arguments together,
and so is the time. Functions of elements are looked at in `language.growth`."""


def test_each_function_is_in_one_list() -> None:
    lists = [STATED, ADDING, {*MAKING}, {*LOOKING}, {*PATTERNS} - {*MAKING}]
    assert set().union(*lists) == SCALARS
    assert sum(len(names) for names in lists) == len(SCALARS)


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_multiplies_stops_at_a_limit_and_says_its_name(bomb: str) -> None:
    with pytest.raises(PanesError, match="of values that are so long"):
        panes.sql(f"SELECT count({bomb}) AS n FROM r [TUMBLING 10 WATTR at]", r=LONG)


@pytest.mark.parametrize("bomb", WRITTEN)
def test_what_multiplies_as_it_is_written_is_refused_when_it_is_read(bomb: str) -> None:
    with pytest.raises(QueryError, match=r"steps; .* is the most"):
        panes.explain(f"SELECT count({bomb}) AS n FROM r [TUMBLING 10 WATTR at]")


@pytest.mark.parametrize("call", PLAIN)
def test_what_does_not_is_answered(call: str) -> None:
    answer = panes.sql(f"SELECT count({call}) AS n FROM r [TUMBLING 10 WATTR at]", r=SHORT)
    assert answer["n"].to_pylist() == [1]


@pytest.mark.parametrize("pattern", EXPLODING)
@pytest.mark.parametrize(
    "call",
    ["s RLIKE '{}'", "regexp_replace(s, '{}', '')", "split(s, '{}')", "regexp_like(s, r'{}')"],
)
def test_patterns_whose_search_explodes_are_refused(pattern: str, call: str) -> None:
    query = f"SELECT count({call.format(pattern)}) AS n FROM r [TUMBLING 10 WATTR at]"
    with pytest.raises(QueryError, match="may take for ever"):
        panes.explain(query)


def test_patterns_are_written_in_the_query() -> None:
    with pytest.raises(QueryError, match="written in the query"):
        panes.explain("SELECT count(*) AS n FROM r [TUMBLING 10 WATTR at] WHERE s RLIKE t")
