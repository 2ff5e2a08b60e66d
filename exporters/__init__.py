"""Exporters of validated networks."""
