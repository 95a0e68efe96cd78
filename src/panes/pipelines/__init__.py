"""From progress to the windows of one query that are due."""
