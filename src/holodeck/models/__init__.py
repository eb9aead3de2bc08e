"""Values of HoloDeck as pydantic models: no I/O, no OpenTelemetry."""
