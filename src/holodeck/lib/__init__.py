"""Pure rules without I/O: what text is acceptable, and what may be shown."""
