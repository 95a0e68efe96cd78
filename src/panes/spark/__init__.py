"""Hosts plans on Apache Spark. Nothing else imports pyspark."""

import pyspark

from panes.spark.version import require_version

require_version(pyspark.__version__)

from panes.spark.checkpoint import check_checkpoint  # noqa: E402 - not before the version is known
from panes.spark.drop_in import group_by, window  # noqa: E402
from panes.spark.drop_in_join import join  # noqa: E402
from panes.spark.live_feed import live  # noqa: E402
from panes.spark.live_rows import LiveRows  # noqa: E402
from panes.spark.query import split  # noqa: E402
from panes.spark.register.deliver import Together  # noqa: E402
from panes.spark.register.register import SparkRegister  # noqa: E402
from panes.spark.session import advice, session  # noqa: E402

__all__ = [
    "LiveRows",
    "SparkRegister",
    "Together",
    "advice",
    "check_checkpoint",
    "group_by",
    "join",
    "live",
    "session",
    "split",
    "window",
]
