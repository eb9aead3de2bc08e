"""What ``holodeck doctor`` does: checks of the agent, checks of the way to the collector, and the report."""
