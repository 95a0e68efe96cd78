"""From a query and the schemas of its streams to a plan, and the plan as text."""
