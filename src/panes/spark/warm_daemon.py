"""The process that Spark forks its Python workers from, with what tasks need loaded already.

A worker of Spark's own daemon imports panes when its first task comes: more than a second of
processor time for each worker. One that is forked from here has it from the start. Spark starts
this module by its name (``spark.python.daemon.module``). It must start no thread: a forked process
would miss it.
"""

from __future__ import annotations

import runpy

import numpy as np
import pandas  # noqa: F401 - imported for those who are forked, as are the next ones

import panes.spark.join.stream
import panes.spark.register.stream
import panes.spark.stream.query  # noqa: F401
from panes.arrays.ordering import is_sorted

if __name__ == "__main__":
    is_sorted(np.arange(2))  # the compiler's own libraries are loaded with its first loop
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
