"""What ``holodeck trace`` does: one module for each of its commands."""
