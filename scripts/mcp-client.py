"""Prints what the reference MCP client gets from a server: its tools, an answer and a refusal, as JSON lines.

    mcp-client.py FUNCTION COMMAND ARGUMENT…          over stdin and stdout
    mcp-client.py FUNCTION http://HOST:PORT/mcp TOKEN  over Streamable HTTP
"""

import asyncio
import json
import sys

import httpx2
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


async def talk(streams, function):
    async with ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        print(json.dumps(sorted(tool.name for tool in tools)))
        for name in (function, "nobody"):
            # The client holds an answer against the tool's own output schema.
            result = await session.call_tool("get_lambda_config", {"lambda_name": name})
            print(json.dumps([result.is_error, result.structured_content, result.content[0].text]))


async def main(function, server, *arguments):
    if server.startswith("http://"):
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {arguments[0]}"}) as client:
            async with streamable_http_client(server, http_client=client) as streams:
                await talk(streams, function)
    else:
        async with stdio_client(StdioServerParameters(command=server, args=list(arguments))) as streams:
            await talk(streams, function)


asyncio.run(main(*sys.argv[1:]))
