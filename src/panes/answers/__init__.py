"""From partials to what was selected, and when it leaves."""
