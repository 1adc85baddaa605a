"""Runs as processes of their own: started ahead of time, queued, found again after a restart."""
