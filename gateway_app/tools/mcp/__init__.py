"""Tools of MCP servers: named in the configuration, reached while the process runs.

Only ``toolset`` and what it uses import the ``mcp`` package, which takes a second: a server without MCP
servers never does.
"""
