"""What rows and promises go through on their way: streams, SELECT, joins, windows of every kind."""
