# ruff: noqa: E501  (a line of the table is one line)
"""Lines of the function table about arrays.

Elements are compared as Spark compares them: NaN equals itself, NULL equals NULL in the functions
of sets, and what comes first stays first: also of 0.0 and -0.0, which are equal, in sorted arrays and
where `array_max` gives one of them. The functions of sets make them one, 0.0.
"""

COLLECTIONS = """
array | T* | array<T> | [{all}]
size cardinality array_size | array | int | len({0})
array_max | array<O> | O | {0}[list_position({0}, list_max({0}))]
array_min | array<O> | O | {0}[list_position({0}, list_min({0}))]
array_contains | array<T>, T | boolean | CASE WHEN {1} IS NULL OR {0} IS NULL THEN NULL WHEN list_contains({0}, {1}) THEN true WHEN len({0}) <> list_count({0}) THEN NULL ELSE false END
array_position | array<T>, T | bigint | CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE coalesce(list_position({0}, {1}), 0) END
array_append | array<T>, T | array<T> | CASE WHEN {0} IS NOT NULL THEN list_append({0}, {1}) END
array_prepend | array<T>, T | array<T> | CASE WHEN {0} IS NOT NULL THEN list_prepend({1}, {0}) END
array_compact | array<T> | array<T> | list_filter({0}, lambda e: e IS NOT NULL)
array_remove | array<T>, T | array<T> | CASE WHEN {1} IS NOT NULL THEN list_filter({0}, lambda e: e IS DISTINCT FROM {1}) END
array_repeat | T, int | array<T> | CASE WHEN {1} IS NOT NULL THEN list_transform(range(greatest({1}, 0)), lambda e: {0}) END
array_distinct | array<Z> | array<Z> | list_filter({0}, lambda e, i: list_position({0}, e) = i)
array_union | array<Z>, array<Z> | array<Z> | CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN list_concat(list_filter({0}, lambda e, i: list_position({0}, e) = i), list_filter({1}, lambda e, i: list_position({1}, e) = i AND list_position({0}, e) IS NULL)) END
array_intersect | array<Z>, array<Z> | array<Z> | CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN list_filter({0}, lambda e, i: list_position({0}, e) = i AND list_position({1}, e) IS NOT NULL) END
array_except | array<Z>, array<Z> | array<Z> | CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN list_filter({0}, lambda e, i: list_position({0}, e) = i AND list_position({1}, e) IS NULL) END
arrays_overlap | array<T>, array<T> | boolean | CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN list_has_any(list_filter({0}, lambda e: e IS NOT NULL), list_filter({1}, lambda e: e IS NOT NULL)) THEN true WHEN len({0}) > 0 AND len({1}) > 0 AND (len({0}) <> list_count({0}) OR len({1}) <> list_count({1})) THEN NULL ELSE false END
get | array<T>, int | T | CASE WHEN {1} >= 0 THEN {0}[CAST({1} AS BIGINT) + 1] END
element_at | array<T>, int | T | CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {1} = 0 OR abs(CAST({1} AS BIGINT)) > len({0}) THEN error('the array has no element at that position') ELSE {0}[{1}] END
try_element_at | array<T>, int | T | CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {1} = 0 THEN error('positions count from 1') ELSE {0}[{1}] END
slice | array<T>, int, int | array<T> | CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL WHEN {1} = 0 OR {2} < 0 THEN error('`slice` counts from 1, and its length is not negative') WHEN {2} = 0 OR ({1} < 0 AND len({0}) + {1} < 0) THEN {0}[2:1] WHEN {1} > 0 THEN {0}[{1}:CAST({1} AS BIGINT) + {2} - 1] ELSE {0}[len({0}) + {1} + 1:len({0}) + {1} + {2}] END
sort_array | array<double>, #boolean? | array<double> | CASE WHEN {1} IS NULL OR {1} THEN list_transform(list_sort(list_transform({0}, lambda e, i: struct_pack(n := e IS NOT NULL, v := coalesce(e + CAST(0 AS DOUBLE), 0), i := i)), 'ASC'), lambda s: {0}[s.i]) ELSE list_transform(list_sort(list_transform({0}, lambda e, i: struct_pack(n := e IS NOT NULL, v := coalesce(e + CAST(0 AS DOUBLE), 0), i := -i)), 'DESC'), lambda s: {0}[-s.i]) END
sort_array | array<float>, #boolean? | array<float> | CASE WHEN {1} IS NULL OR {1} THEN list_transform(list_sort(list_transform({0}, lambda e, i: struct_pack(n := e IS NOT NULL, v := coalesce(e + CAST(0 AS DOUBLE), 0), i := i)), 'ASC'), lambda s: {0}[s.i]) ELSE list_transform(list_sort(list_transform({0}, lambda e, i: struct_pack(n := e IS NOT NULL, v := coalesce(e + CAST(0 AS DOUBLE), 0), i := -i)), 'DESC'), lambda s: {0}[-s.i]) END
sort_array | array<O>, #boolean? | array<O> | CASE WHEN {1} IS NULL OR {1} THEN list_sort({0}, 'ASC', 'NULLS FIRST') ELSE list_sort({0}, 'DESC', 'NULLS LAST') END
array_sort | array<double> | array<double> | list_transform(list_sort(list_transform({0}, lambda e, i: struct_pack(n := e IS NULL, v := coalesce(e + CAST(0 AS DOUBLE), 0), i := i)), 'ASC'), lambda s: {0}[s.i])
array_sort | array<float> | array<float> | list_transform(list_sort(list_transform({0}, lambda e, i: struct_pack(n := e IS NULL, v := coalesce(e + CAST(0 AS DOUBLE), 0), i := i)), 'ASC'), lambda s: {0}[s.i])
array_sort | array<O> | array<O> | list_sort({0}, 'ASC', 'NULLS LAST')
array_join | array<string>, #string | string | CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN coalesce(array_to_string({0}, {1}), '') END
array_join | array<string>, #string, string | string | CASE WHEN {1} IS NOT NULL AND {2} IS NOT NULL THEN array_to_string(list_transform({0}, lambda e: coalesce(e, {2})), {1}) END
array_join | array<bigint>, #string | string | CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN coalesce(array_to_string(list_transform({0}, lambda e: CAST(e AS VARCHAR)), {1}), '') END
array_join | array<bigint>, #string, string | string | CASE WHEN {1} IS NOT NULL AND {2} IS NOT NULL THEN array_to_string(list_transform({0}, lambda e: coalesce(CAST(e AS VARCHAR), {2})), {1}) END
array_insert | array<T>, int, T | array<T> | CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {1} = 0 OR abs(CAST({1} AS BIGINT)) > len({0}) + 1 THEN error('`array_insert` beyond the array is not translated') WHEN {1} > 0 THEN list_concat(list_append({0}[1:{1} - 1], {2}), {0}[{1}:]) ELSE list_concat(list_append({0}[1:len({0}) + {1} + 1], {2}), {0}[len({0}) + {1} + 2:]) END
"""
