"""What Python workers are forked from while streams are killed: everything is imported already.

A worker that is killed is followed by another one. Importing takes a worker longer than what it
is there for, and after the hundredth kill it is all that was waited for.
"""

import runpy

import panes.crash.trial
import panes.spark.register.stream
import panes.spark.stream.query  # noqa: F401 - imported for those who are forked

if __name__ == "__main__":
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
