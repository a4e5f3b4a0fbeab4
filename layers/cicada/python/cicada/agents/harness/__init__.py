"""The agent that runs in a harness of Amazon Bedrock AgentCore; its tools run with us."""
