"""Indexes of live windows: which values a window holds, how often, and in which rows.

Read `live_window` first: rows in, basic windows sealed and evicted (`indexed_rows` keeps rows and
index in step).

    rows    row_ring, basic_windows, short_answers
    values  keys, text_numbers          values as 64-bit keys
            domain                      every value once, with its count
    forms   form_list, form_aggr, form_hash, form_group
                                        what a basic window stores (paper, 2.2)
    values' indexes   forms over l_index, t_index, h_index; g_index       (paper, 4)
    rows' indexes     row_links, and ring, aux_ring, bw, db               (paper, 5)
    no index          scan
    questions         nearest
    choice            kinds, operators, cost                              (paper, 3 and table 1)
"""
