"""From rows to partials per pane and key; which filters hold of which rows."""
