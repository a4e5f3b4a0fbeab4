"""Generation and embeddings behind small ports, with their Amazon Bedrock adapters."""
