"""The kit: the small set of views that every tab is made of."""
