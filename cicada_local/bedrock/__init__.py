"""Stand-ins for Amazon Bedrock: its wire format, and small models behind it."""
