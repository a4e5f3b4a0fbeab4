"""The agent whose loop is our own, on Amazon Bedrock's ConverseStream: it works in every account."""
