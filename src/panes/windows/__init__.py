"""Window kinds as data, what they mean, and where their panes begin."""
