"""Runs queries and graphs of them in this process: Arrow tables in, Arrow tables out."""
