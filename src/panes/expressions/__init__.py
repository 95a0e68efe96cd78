"""Scalar SQL with one meaning: Spark's, in ANSI mode, evaluated in this process by DuckDB.

Where to begin: `translate` goes through an expression and gives DuckDB's text with Spark's type.

- ``dialect``, ``literals``, ``intervals``, ``lambdas``: how the text is read.
- ``types``, ``typed``: the types, and an expression that has one.
- ``calculation``, ``comparison``, ``casts``, ``choices``: operators.
- ``table`` and ``table_*``: functions that are one line each; ``rules`` reads the lines.
- ``forms`` and ``forms_*``: functions that need more than a line.
- ``patterns``, ``regexes``, ``zones``: patterns of dates, regular expressions, named zones.
- ``names``: all functions, for hints.
"""
