"""The page of `attn look`, made of matrices and labels: its scripts and styles, which the tool has too, stand in this
folder where the package is installed."""
