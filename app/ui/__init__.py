"""All Qt code."""
