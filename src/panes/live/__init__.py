"""What a running query shows of itself: snapshots, the server that gives them, and the page."""
