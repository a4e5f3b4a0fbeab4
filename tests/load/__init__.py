"""Load: hundreds of askers at a human pace over one local cloud, and what they had to wait for."""
