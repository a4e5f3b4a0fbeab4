"""Agents: models that use tools, behind one port, with an adapter a service, over the same tools."""
