"""Streams on Spark that are killed, started again, and compared with the oracle.

sample, jobs               what is run: a user's query over a sample; `lab.crash` has more
place                      where it lives: rows, checkpoint, sinks
written                    the job as text, for the process that runs it
kills                      at which point of which batch which process dies
trials                     runs it, killed again and again, until it ends
  drivers, driver          the processes of Spark that run it
  processes                who is killed
  trial                    the points in the stream that a kill can wait for
verdict                    what was lost, came twice or is wrong
"""
