"""What every attempt at an answer shares: strategies' contract, the chain, budgets, model calls, frame limits."""
