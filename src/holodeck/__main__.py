"""``python -m holodeck``: the same as the ``holodeck`` command."""

from __future__ import annotations

from holodeck.cli.main import main

if __name__ == "__main__":
    main()
