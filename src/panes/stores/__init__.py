"""Where partials wait: stores behind the verbs add, answer and evict."""
