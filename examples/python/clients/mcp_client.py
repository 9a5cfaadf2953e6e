"""MCP with `nightingale mcp`, which it starts: python mcp_client.py TEXT FILE [OPTION]..."""

import asyncio
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters, stdio_client


async def main(text: str, path: str, *options: str) -> None:
    file = Path(path).absolute()
    command = ["-m", "nightingale", "mcp", "--folder", str(file.parent), *options]
    server = StdioServerParameters(command=sys.executable, args=command)
    async with Client(stdio_client(server)) as client:
        result = await client.call_tool("make_file", {"text": text, "name": file.name})
        if result.is_error:
            sys.exit(str(result.content))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
