"""A third-party MCP server about routers, with the reference SDK: tools that read, fail, or could do harm."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("their-network")


@server.tool()
def get_devices() -> list[str]:
    """The routers."""
    return ["ams-pe-1", "ams-pe-2"]


@server.tool()
def get_bgp_summary(device: str) -> dict:
    """BGP sessions of a router."""
    return {"peers": [{"peer": "10.0.0.1", "session-state": "Idle", "reason": "closed by the far end"}]}


@server.tool()
def get_interface_status(device: str) -> dict:
    """Interfaces of a router."""
    raise RuntimeError("gNMI: authentication failed")


@server.tool()
def reboot(device: str) -> str:
    """Restarts a router."""
    raise AssertionError("nobody may call this")


server.run("stdio")
