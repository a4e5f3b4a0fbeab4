"""Cutting documents into passages at their natural boundaries."""
