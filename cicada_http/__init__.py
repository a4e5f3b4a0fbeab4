"""HTTP access to a deployment: MCP and an OpenAI-compatible API, in one function behind a function URL."""
