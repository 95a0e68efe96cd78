"""A store whose state is bytes, for any host: combine, send, keep, take up again."""
