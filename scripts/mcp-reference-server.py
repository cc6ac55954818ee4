"""An MCP server with the reference SDK, over each transport.

    mcp-reference-server.py stdio
    mcp-reference-server.py http TOKEN    Streamable HTTP; prints `ready URL` and requires the bearer TOKEN
    mcp-reference-server.py sse TOKEN     the older HTTP with server-sent events, likewise

Prints `cancelled` to stderr when a call of `wait` is cancelled.
"""

import asyncio
import json
import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp_types import SamplingMessage, TextContent, ToolAnnotations

server = MCPServer("reference", log_level="ERROR")
PIXEL = bytes.fromhex("89504e470d0a1a0a")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two whole numbers."""
    return a + b


@server.tool(structured_output=False)
def repeat(text: str, times: int) -> str:
    """Repeats a text."""
    return text * times


@server.tool()
async def wait(seconds: float, ctx: Context) -> str:
    """Takes its time, and says how far it is and what it thinks of it."""
    try:
        for step in range(10):
            await ctx.report_progress(step, 10, f"step {step}")
            for line in range(20):
                await ctx.info(f"line {line} of step {step}")
            await asyncio.sleep(seconds / 10)
    except BaseException:
        print("cancelled", file=sys.stderr, flush=True)
        raise
    return "done"


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("the disk is full")


@server.tool()
def picture() -> Image:
    """Shows a picture."""
    return Image(data=PIXEL, format="png")


@server.tool()
async def ask_model(ctx: Context) -> str:
    """Wants the client's model to say something."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text="hello"))
    await ctx.session.create_message(messages=[message], max_tokens=10)
    return "the model answered"


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def wipe() -> str:
    """Wipes everything."""
    return "wiped"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look() -> str:
    """Looks at something."""
    return "seen"


@server.tool(structured_output=False)
def get_recent_logs(lambda_name: str) -> str:
    """Says as much as the name asks for: `megabytes-3`."""
    lines = int(lambda_name.split("-")[1]) * 1024
    events = [{"timestamp": "2026-11-22T00:00:00Z", "message": "x" * 1024} for _ in range(lines)]
    return json.dumps({"log_group": lambda_name, "events": events})


def only_with(token, app):
    async def guarded(scope, receive, send):
        if scope["type"] == "http" and dict(scope["headers"]).get(b"authorization") != f"Bearer {token}".encode():
            await send({"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", b"Bearer")]})
            await send({"type": "http.response.body", "body": b"no"})
            return
        await app(scope, receive, send)

    return guarded


def serve(transport, token):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    app, path = (server.sse_app(), "/sse") if transport == "sse" else (server.streamable_http_app(), "/mcp")
    print(f"ready http://127.0.0.1:{listener.getsockname()[1]}{path}", flush=True)
    uvicorn.Server(uvicorn.Config(only_with(token, app), log_level="error")).run(sockets=[listener])


if sys.argv[1] == "stdio":
    server.run()
else:
    serve(*sys.argv[1:])
