"""`python -m attn.bench`: libattn beside PyTorch's scaled_dot_product_attention, and what a call costs."""
