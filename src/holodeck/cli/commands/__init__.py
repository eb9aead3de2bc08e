"""What slash commands do."""
