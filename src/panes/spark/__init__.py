"""Hosts plans on Apache Spark. Nothing else imports pyspark."""

from panes.spark.drop_in import group_by, window
from panes.spark.query import split
from panes.spark.session import advice, session

__all__ = ["advice", "group_by", "session", "split", "window"]
