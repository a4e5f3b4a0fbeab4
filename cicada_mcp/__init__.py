"""The MCP server: the corpus for hosts of the Model Context Protocol, such as desktop assistants and editors.

:func:`cicada_mcp.server.create_server` makes it over the Python client; ``cicada mcp`` serves it over standard input
and output, ``cicada_http`` over HTTP.
"""
