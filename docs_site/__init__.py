"""The documentation site: what MkDocs cannot take from `docs/` as it is."""
