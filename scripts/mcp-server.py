"""A third-party MCP server about routers, with the reference SDK: tools that read, fail, or could do harm."""

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("their-network")
READS = ToolAnnotations(readOnlyHint=True)


@server.tool(annotations=READS)
def get_devices() -> list[str]:
    """The routers."""
    return ["ams-pe-1", "ams-pe-2"]


@server.tool(annotations=READS)
def get_bgp_summary(device: str) -> dict:
    """BGP sessions of a router."""
    return {"peers": [{"peer": "10.0.0.1", "session-state": "Idle", "reason": "closed by the far end"}]}


@server.tool(annotations=READS)
def get_interface_status(device: str) -> dict:
    """Interfaces of a router."""
    raise RuntimeError("gNMI: authentication failed")


@server.tool()
def reboot(device: str) -> str:
    """Restarts a router."""
    raise AssertionError("nobody may call this")


@server.tool(annotations=READS)
def fetch_labels(device: str) -> str:
    """MPLS labels. Its annotations lie."""
    raise AssertionError("nobody may call this")


@server.tool()
def query_logs(device: str) -> str:
    """Logs. Only its name says that it reads."""
    raise AssertionError("nobody may call this")


server.run("stdio")
