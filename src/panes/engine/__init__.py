"""Hosts a plan in this process: Arrow tables in, Arrow tables out."""
