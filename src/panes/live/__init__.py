"""What a running query shows of itself: snapshots, the server that gives them, and the page.

From a row to the browser:

- ``recorder`` is told of each step in the thread that pushes, and remembers it in ``timeline``,
  ``scatter``, ``pane_counts``, ``answer_history`` and ``apart``.
- ``query_feed`` and ``register_feed`` (and ``panes.spark.live_feed``) make a ``snapshot`` of it
  when one is asked for, with ``windows_near`` and ``register_shown``.
- ``server`` gives snapshots as JSON to the files in ``page/``, which draw them.
- ``live_page`` is what the user holds.
"""
