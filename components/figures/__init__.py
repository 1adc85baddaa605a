"""Plotly figures: pure functions from a result to a figure."""
