"""The page: Gradio tabs, and the kit they share. Computes nothing."""
