"""Operators that rows and promises pass through before they are windowed (thesis 8.2)."""
