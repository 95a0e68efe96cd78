"""The scalar functions that an expression may call: names of Spark's, and no others.

A function belongs here if its result depends on its arguments alone. Functions that read a clock,
draw random numbers, look at settings, files or Java, or make several rows of one are left out;
`REFUSED` says why, for those that people are likely to try.
"""

from __future__ import annotations

from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DATES = _words("""
    add_months convert_timezone date_add date_diff date_format date_from_unix_date date_part
    date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract
    from_unixtime from_utc_timestamp hour last_day make_date make_dt_interval make_interval
    make_time make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval minute month
    monthname months_between next_day quarter second time_bucket time_diff time_from_micros
    time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc
    timestamp_micros timestamp_millis timestamp_nanos timestamp_seconds timestampadd timestampdiff
    to_date to_time to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp
    to_utc_timestamp trunc try_make_interval try_make_timestamp try_make_timestamp_ltz
    try_make_timestamp_ntz try_to_date try_to_time try_to_timestamp unix_date unix_micros
    unix_millis unix_nanos unix_seconds unix_timestamp weekday weekofyear year
""")
_MATHEMATICS = _words("""
    abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos cosh cot csc
    degrees div e exp expm1 factorial floor greatest hex hypot least ln log log10 log1p log2 mod
    negative pi pmod positive pow power radians rint round sec sign signum sin sinh sqrt tan tanh
    try_add try_divide try_mod try_multiply try_subtract unhex width_bucket bit_count bit_get getbit
    shiftleft shiftright shiftrightunsigned
""")
_CONDITIONS = _words("""
    between coalesce equal_null if ifnull ilike isnan isnotnull isnull like nanvl not nullif
    nullifzero nvl nvl2 regexp regexp_like rlike when zeroifnull
""")
_TEXT = _words("""
    ascii base64 bit_length btrim char char_length character_length chr collate collation concat
    concat_ws contains decode elt encode endswith find_in_set format_number format_string
    from_base32 initcap instr is_valid_utf8 jaro_winkler_similarity lcase left len length
    levenshtein locate lower lpad ltrim luhn_check make_valid_utf8 mask octet_length overlay
    position printf quote regexp_count regexp_extract regexp_extract_all regexp_instr regexp_replace
    regexp_substr repeat replace reverse right rpad rtrim sentences soundex space split split_part
    startswith substr substring substring_index to_base32 to_binary to_char to_number to_varchar
    translate trim try_to_binary try_to_number try_validate_utf8 ucase unbase64 upper validate_utf8
    parse_url try_parse_url try_url_decode url_decode url_encode
""")
_COLLECTIONS = _words("""
    array array_append array_compact array_contains array_distinct array_except array_insert
    array_intersect array_join array_max array_min array_position array_prepend array_remove
    array_repeat array_size array_union arrays_overlap arrays_zip cardinality element_at flatten get
    map map_concat map_contains_key map_entries map_from_arrays map_from_entries map_keys map_values
    named_struct sequence size slice sort_array str_to_map struct try_element_at
""")
_CONVERSIONS = _words("""
    bigint binary boolean cast date decimal double float int smallint string time timestamp tinyint
    try_cast typeof crc32 hash md5 sha sha1 sha2 xxhash64 hmac aes_decrypt try_aes_decrypt
    from_json get_json_object json_array_length json_object_keys schema_of_json to_json
    from_csv schema_of_csv to_csv bitmap_bit_position bitmap_bucket_number bitmap_count
""")

SCALARS = _DATES | _MATHEMATICS | _CONDITIONS | _TEXT | _COLLECTIONS | _CONVERSIONS

_CLOCK = "depends on the clock, so the same rows would give other answers tomorrow"
_CHANCE = "is random, so the same rows would give other answers each time"
_SETTING = "depends on the session and not on the rows"
_OUTSIDE = "reaches outside the query, which its text may not"
_SEVERAL = "makes several rows of one, so sums and counts over them would be wrong"
_RANKING = "ranks rows against each other, and an expression sees one row"
_LAMBDA = "takes a function of its own, which expressions here cannot hold"

_REASONS = {
    _CLOCK: """
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
        aggregate array_sort exists filter forall map_filter map_zip_with reduce transform
        transform_keys transform_values zip_with""",
}

REFUSED: Mapping[str, str] = {
    name: reason for reason, names in _REASONS.items() for name in names.split()
}
