"""The messages between a client and Cicada."""
