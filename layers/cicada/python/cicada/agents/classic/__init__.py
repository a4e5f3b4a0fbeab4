"""Amazon Bedrock Agents ("Classic"): the loop runs in the service, tools that read in its action-group function, and
tools that write in the worker."""
