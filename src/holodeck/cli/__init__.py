"""The ``holodeck`` command: the only place with click, rich, prompt_toolkit and exit codes."""
