"""The scalar functions that a query may call: names of Spark's, and no others.

Those of `panes.expressions.table` mean the same on every engine. A few more are evaluated by Spark
alone, where the query is asked there. The result of each depends on its arguments alone. Functions
that read a clock, draw random numbers, look at settings, files or Java, or make several rows of
one are left out; `REFUSED` says why, for those that people are likely to try.
"""

from __future__ import annotations

from collections.abc import Mapping

from panes.expressions import clock
from panes.expressions.names import NAMES


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ON_SPARK = _words("""
    acosh aes_decrypt asinh atanh collate collation format_number format_string from_base32
    from_csv from_json get_json_object hll_sketch_estimate hll_union hmac hypot
    jaro_winkler_similarity json_array_length json_object_keys make_dt_interval make_interval
    make_time make_ym_interval parse_url printf quote schema_of_csv schema_of_json sentences
    soundex str_to_map theta_difference theta_intersection theta_sketch_estimate theta_union
    time time_diff time_from_micros time_from_millis time_from_seconds time_to_micros
    time_to_millis time_to_seconds time_trunc timestamp_nanos to_base32 to_csv to_json to_number
    to_time try_aes_decrypt try_make_interval try_parse_url try_to_number try_to_time
    tuple_difference_double tuple_difference_integer tuple_difference_theta_double
    tuple_difference_theta_integer tuple_intersection_double tuple_intersection_integer
    tuple_intersection_theta_double tuple_intersection_theta_integer tuple_sketch_estimate_double
    tuple_sketch_estimate_integer tuple_sketch_summary_double tuple_sketch_summary_integer
    tuple_sketch_theta_double tuple_sketch_theta_integer tuple_union_double tuple_union_integer
    tuple_union_theta_double tuple_union_theta_integer unix_nanos xxhash64
""")
"""Functions of one row that only Spark evaluates."""

SCALARS = NAMES | ON_SPARK

CLOCK = clock.REASON
CLOCKS_BY_DEFAULT = frozenset({"unix_timestamp"})
"""Functions that read the clock where they have no argument."""

_CHANCE = "is random, so the same rows would give other answers each time"
_SETTING = "depends on the session and not on the rows"
_OUTSIDE = "reaches outside the query, which its text may not"
_SEVERAL = "makes several rows of one, so sums and counts over them would be wrong"
_RANKING = "ranks rows against each other, and an expression sees one row"
_LAMBDA = "makes anything of each element, so its result may be very much longer than its argument"
HINTS = {
    CLOCK: clock.HINT,
    _CHANCE: "a tenth of all keys, the same each time: WHERE crc32(CAST(item AS STRING)) % 10 = 0",
    _SEVERAL: "make the rows before, as in df.select('*', F.explode('xs').alias('x')); over the "
    "elements of one row: aggregate(xs, 0, (a, x) -> a + x)",
}
"""What to write instead of a function that is refused, by the reason."""

_REASONS = {
    CLOCK: """
        curdate current_date current_time current_timestamp localtime localtimestamp now getdate
        today get_current_timestamp transaction_timestamp""",
    _CHANCE: """
        rand randn random randstr uniform uuid gen_random_uuid shuffle monotonically_increasing_id
        aes_encrypt setseed""",
    _SETTING: """
        current_catalog current_database current_path current_schema current_setting
        current_timezone current_user session_user spark_partition_id user version
        getvariable getenv""",
    _OUTSIDE: """
        java_method reflect try_reflect input_file_name input_file_block_length
        input_file_block_start read_text read_blob read_csv read_csv_auto read_json read_json_auto
        read_ndjson read_parquet parquet_scan glob sniff_csv from_avro to_avro schema_of_avro
        from_protobuf to_protobuf from_xml to_xml schema_of_xml xpath xpath_boolean xpath_double
        xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string""",
    _SEVERAL: """
        explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple
        unnest generate_series""",
    _RANKING: """
        cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number counter_diff""",
    _LAMBDA: """
        map_zip_with transform transform_keys transform_values zip_with""",
}

REFUSED: Mapping[str, str] = {
    name: reason for reason, names in _REASONS.items() for name in names.split()
}
