# ruff: noqa: E501  (a line of the table is one line)
"""Lines of the function table about dates and moments; moments are in UTC."""

DATES = """
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
dayname | date | string | left(dayname({0}), 3)
monthname | date | string | left(monthname({0}), 3)
last_day | date | date | last_day({0})
date_add dateadd | date, int | date | CASE WHEN abs(CAST({1} AS BIGINT)) > 1000000000 AND {0} IS NOT NULL THEN error('a date so far away is not translated')::DATE ELSE {0} + {1} END
date_sub | date, int | date | CASE WHEN abs(CAST({1} AS BIGINT)) > 1000000000 AND {0} IS NOT NULL THEN error('a date so far away is not translated')::DATE ELSE {0} - {1} END
datediff date_diff | date, date | int | {0} - {1}
add_months | date, int | date | CASE WHEN {1} IS NULL OR {0} IS NULL THEN NULL ELSE {0} + to_months({1}) END
make_date | int, int, int | date | make_date({0}, {1}, {2})
date_from_unix_date | int | date | CASE WHEN abs(CAST({0} AS BIGINT)) > 1000000000 THEN error('a date so far away is not translated')::DATE ELSE DATE '1970-01-01' + {0} END
unix_date | date | int | {0} - DATE '1970-01-01'
unix_micros | timestamp | bigint | epoch_us({0})
unix_millis | timestamp | bigint | (epoch_us({0}) - ((epoch_us({0}) % 1000) + 1000) % 1000) // 1000
unix_seconds | timestamp | bigint | (epoch_us({0}) - ((epoch_us({0}) % 1000000) + 1000000) % 1000000) // 1000000
timestamp_micros | bigint | timestamp | CASE WHEN {0} NOT BETWEEN -9000000000000000000 AND 9000000000000000000 THEN error('a moment so far away is not translated')::TIMESTAMPTZ ELSE make_timestamptz({0}) END
timestamp_millis | bigint | timestamp | make_timestamptz({0} * 1000)
timestamp_seconds | bigint | timestamp | make_timestamptz({0} * 1000000)
date | date | date | {0}
"""
