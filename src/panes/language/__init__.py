"""The language: Spark SQL's SELECT plus the papers' window clause."""
