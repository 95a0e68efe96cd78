"""Joins of streams whose windows bound what is stored: which rows match, which may still do so.

rule                       what a join is told, and what it gives
oa_join                    rows in any order, pairs at once (thesis, ch. 7)
  slices                   a large batch, cut by time
  key_codes, sorted_rows   rows by key and position
  matches                  who matches whom
  marks                    who has a partner already
  time_blocks              rows that may still match
waiting_rows               joins whose rows on the left wait until their partners are there
  as_of, partner_runs
progress                   what a join promises of the rows it gives (thesis, 7.1 and 7.2)
"""
