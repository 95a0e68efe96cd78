"""Hosts plans on Apache Spark. Nothing else imports pyspark."""

from panes.spark.drop_in import group_by, window
from panes.spark.query import split
from panes.spark.register.deliver import Together
from panes.spark.register.register import SparkRegister
from panes.spark.session import advice, session

__all__ = ["SparkRegister", "Together", "advice", "group_by", "session", "split", "window"]
