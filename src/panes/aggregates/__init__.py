"""Aggregates as algebra on columns: pieces that combine, and how to lower them to an answer."""
