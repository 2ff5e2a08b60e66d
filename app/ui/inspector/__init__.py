"""The Channel Inspector."""
