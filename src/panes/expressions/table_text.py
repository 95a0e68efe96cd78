# ruff: noqa: E501  (a line of the table is one line)
"""Lines of the function table about text and bytes.

Text is counted in code points, as Spark counts it. Where only some letters are certain to be the
same, others are an error when they are met.
"""

TEXT = r"""
length len char_length character_length | string | int | length({0})
length len octet_length char_length character_length | binary | int | octet_length({0})
octet_length | string | int | octet_length(encode({0}))
bit_length | binary | int | 8 * octet_length({0})
bit_length | string | int | 8 * octet_length(encode({0}))
reverse | string | string | array_to_string(list_reverse(string_split({0}, '')), '')
reverse | binary | binary | unhex(array_to_string(list_reverse(regexp_extract_all(hex({0}), '..')), ''))
reverse | array<T> | array<T> | list_reverse({0})
ascii | string | int | CASE WHEN {0} = '' THEN 0 ELSE unicode({0}) END
char chr | bigint | string | CASE WHEN {0} < 0 THEN '' ELSE chr(CAST({0} & 255 AS INTEGER)) END
upper ucase | string | string | CASE WHEN regexp_matches({0}, '[ŉǰΐΰևẖ-ẚὐ-ὖᾀ-ᾯᾲ-ᾷᾼῂ-ῇῌῒ-ῗῢ-ῧῲ-ῷῼﬀ-ﬗ]') THEN error('`upper` of letters that become several is not translated') ELSE upper(replace({0}, 'ß', 'SS')) END
lower lcase | string | string | CASE WHEN regexp_matches({0}, '[Σİ]') THEN error('`lower` of letters whose form depends on others is not translated') ELSE lower({0}) END
trim btrim | string | string | trim({0}, ' ')
ltrim | string | string | ltrim({0}, ' ')
rtrim | string | string | rtrim({0}, ' ')
btrim | string, string | string | trim({0}, {1})
ltrim | string, string | string | ltrim({1}, {0})
rtrim | string, string | string | rtrim({1}, {0})
initcap | string | string | CASE WHEN regexp_matches({0}, '[^\x00-\x7FÀ-Þà-ÿЀ-џぁ-ヿ一-鿿]') THEN error('`initcap` of such letters is not translated') ELSE array_to_string(list_transform(string_split(lower({0}), ' '), lambda w: upper(left(w, 1)) || substr(w, 2)), ' ') END
contains | string, string | boolean | contains({0}, {1})
startswith | string, string | boolean | starts_with({0}, {1})
endswith | string, string | boolean | ends_with({0}, {1})
startswith | binary, binary | boolean | starts_with(hex({0}), hex({1}))
endswith | binary, binary | boolean | ends_with(hex({0}), hex({1}))
contains | binary, binary | boolean | regexp_matches(hex({0}), '^(..)*' || hex({1}))
replace | string, string, string | string | CASE WHEN {1} = '' AND {2} IS NOT NULL THEN {0} ELSE replace({0}, {1}, {2}) END
replace | string, string | string | CASE WHEN {1} = '' THEN {0} ELSE replace({0}, {1}, '') END
left | string, int | string | CASE WHEN {1} <= 0 THEN left({0}, 0) ELSE left({0}, {1}) END
right | string, int | string | CASE WHEN {1} <= 0 THEN left({0}, 0) ELSE right({0}, {1}) END
repeat | string, int | string | repeat({0}, greatest({1}, 0) + 0 * {1})
space | int | string | repeat(' ', greatest({0}, 0) + 0 * {0})
instr | string, string | int | instr({0}, {1})
locate position | string, string | int | instr({1}, {0})
locate position | string, string, int | int | CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN CASE WHEN {2} IS NULL THEN 0 END WHEN {2} < 1 THEN 0 WHEN {0} = '' THEN CASE WHEN {2} = 1 THEN 1 ELSE error('`locate` of empty text is not translated')::INTEGER END WHEN instr(substr({1}, {2}), {0}) = 0 THEN 0 ELSE instr(substr({1}, {2}), {0}) + {2} - 1 END
find_in_set | string, string | int | CASE WHEN contains({0}, ',') AND {1} IS NOT NULL THEN 0 WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE coalesce(list_position(string_split({1}, ','), {0}), 0) END
levenshtein | string, string | int | CASE WHEN regexp_matches({0} || {1}, '[^\x00-\x7F]') THEN error('`levenshtein` of text outside ASCII is not translated')::INTEGER ELSE levenshtein({0}, {1}) END
levenshtein | string, string, int | int | CASE WHEN regexp_matches({0} || {1}, '[^\x00-\x7F]') THEN error('`levenshtein` of text outside ASCII is not translated')::INTEGER WHEN {2} IS NULL THEN NULL WHEN levenshtein({0}, {1}) <= {2} THEN levenshtein({0}, {1}) WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN -1 END
split_part | string, string, int | string | CASE WHEN {2} = 0 THEN error('`split_part` counts from 1') WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL WHEN {1} = '' THEN CASE WHEN {2} IN (1, -1) THEN {0} ELSE '' END ELSE coalesce(string_split({0}, {1})[{2}], '') END
unhex | string | binary | CASE WHEN NOT regexp_full_match({0}, '[0-9a-fA-F]*') THEN NULL WHEN length({0}) % 2 = 1 THEN unhex('0' || {0}) ELSE unhex({0}) END
base64 | binary | string | base64({0})
base64 | string | string | base64(encode({0}))
unbase64 | string | binary | CASE WHEN regexp_full_match({0}, '(?:[A-Za-z0-9+/]{{4}})*(?:[A-Za-z0-9+/]{{2}}==|[A-Za-z0-9+/]{{3}}=)?') THEN from_base64({0}) WHEN {0} IS NOT NULL THEN error('`unbase64` of such text is not translated')::BLOB END
md5 | string | string | md5({0})
md5 | binary | string | md5({0})
sha sha1 | string | string | sha1({0})
sha sha1 | binary | string | sha1({0})
luhn_check | string | boolean | CASE WHEN NOT regexp_full_match({0}, '[0-9]+') THEN false ELSE list_sum(list_transform(list_reverse(string_split({0}, '')), lambda c, i: CASE WHEN i % 2 = 1 THEN CAST(c AS INTEGER) WHEN c > '4' THEN 2 * CAST(c AS INTEGER) - 9 ELSE 2 * CAST(c AS INTEGER) END)) % 10 = 0 END
url_encode | string | string | replace(replace(replace(url_encode({0}), '%20', '+'), '%2A', '*'), '~', '%7E')
url_decode | string | string | CASE WHEN regexp_full_match({0}, '(?s)(?:[^%]|%[0-9a-fA-F][0-9a-fA-F])*') THEN url_decode(replace({0}, '+', ' ')) WHEN {0} IS NOT NULL THEN error('the URL cannot be decoded') END
try_url_decode | string | string | CASE WHEN regexp_full_match({0}, '(?s)(?:[^%]|%[0-9a-fA-F][0-9a-fA-F])*') THEN url_decode(replace({0}, '+', ' ')) END
is_valid_utf8 | string | boolean | CASE WHEN {0} IS NOT NULL THEN true END
make_valid_utf8 validate_utf8 try_validate_utf8 | string | string | {0}
is_valid_utf8 | binary | boolean | CASE WHEN {0} IS NOT NULL THEN list_transform([{0}], lambda u: TRY(decode(u)))[1] IS NOT NULL END
validate_utf8 | binary | string | decode({0})
try_validate_utf8 | binary | string | list_transform([{0}], lambda u: TRY(decode(u)))[1]
"""
