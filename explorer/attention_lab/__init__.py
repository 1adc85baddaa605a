"""What the attention lab computes: by hand, masks, kinds of heads, interventions, costs, experts.

Maps of a loaded model are in `explorer/attention_maps.py`; here is what is built around them.
"""
