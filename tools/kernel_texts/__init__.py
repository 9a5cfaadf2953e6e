"""What MLX compiles on Metal: written out, compared with digests, and compiled without a Mac."""
