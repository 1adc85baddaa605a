"""The page: Gradio tabs, the kit they share, and figures. Computes nothing."""
