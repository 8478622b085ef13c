"""A real S3 server on loopback, behind a proxy that is slow and breaks answers when it is told to."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import Request, urlopen

import fsspec
import pytest
import s3fs
from moto.server import ThreadedMotoServer

from recipe.pools.remote import asking
from recipe.pools.remote import store as remote

Fault = Callable[[str, int], str | None]
"""Of the path of a GET of a range and its number, from 1: 503, reset, truncate, stall, or None: answer; 403:
to a URL that is signed, alone."""


@dataclass
class Proxy:
    """Hands requests on to a server; what it counts is what clients asked for."""

    port: int
    latency: float = 0.0
    """Seconds before an answer."""
    fault: Fault | None = None
    broken_listings: int = 0
    """Listings of folders that are answered 503 from now on."""
    gets: list[tuple[str, int]] = field(default_factory=list)
    """Path and bytes of every object or range that was given in full."""
    ranges: int = 0
    """Ranges asked for, those broken too."""
    address: str = ""
    tasks: set[object] = field(default_factory=set)

    @property
    def num_bytes(self) -> int:
        return sum(size for _, size in self.gets)

    async def serve(self, ready: Callable[[], None], stop: asyncio.Event) -> None:
        server = await asyncio.start_server(self._client, "127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready()
        async with server:
            await stop.wait()
        here = asyncio.current_task()
        clients = [task for task in asyncio.all_tasks() if task is not here]
        for task in clients:
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self.tasks.add(task)  # a loop by itself keeps its tasks only while somebody does
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._request(reader, writer):
                pass
        writer.transport.abort()
        with suppress(ConnectionError, asyncio.CancelledError):
            await writer.wait_closed()
        self.tasks.discard(task)

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        if re.search(rb"\r\nexpect: 100-continue", head, re.I):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        sent = await reader.readexactly(_length(head))
        method, target, _ = head.decode("latin-1").split(" ", 2)
        path, _, query = target.partition("?")
        is_range = method == "GET" and re.search(rb"\r\nrange:", head, re.I) is not None
        await asyncio.sleep(self.latency)
        fault = None
        if method == "GET" and "list-type=" in query and self.broken_listings:
            self.broken_listings -= 1
            fault = "503"
        if is_range:
            self.ranges += 1
            fault = self.fault(path, self.ranges) if self.fault is not None else None
        if fault == "reset":
            writer.transport.abort()
            return False
        if fault == "403" and "X-Amz-Signature=" in query:
            writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
            return True
        if fault == "503":
            writer.write(b"HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\n\r\n")
            return True
        answer, body = await self._upstream(head, sent, method)
        if fault == "stall":
            writer.write(answer + body[: len(body) // 2])
            await asyncio.sleep(3600)
        is_object = not query or "X-Amz-Signature=" in query
        is_given = method == "GET" and answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 206")) and is_object
        if is_given and fault != "truncate":
            self.gets.append((path, len(body)))  # before the client, in another thread, can have it and look
        writer.write(answer + (body[: len(body) // 2] if fault == "truncate" else body))
        await writer.drain()
        return fault != "truncate"

    async def _upstream(self, head: bytes, sent: bytes, method: str) -> tuple[bytes, bytes]:
        """The server's answer; a connection of its own, as its own server closes each."""
        up, down = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            down.write(re.sub(rb"\r\n(connection|expect):[^\r]*", b"", head, flags=re.I) + sent)
            answer = await up.readuntil(b"\r\n\r\n")
            body = b"" if method == "HEAD" else await up.readexactly(_length(answer))
        finally:
            down.transport.abort()
        answer = re.sub(rb"\r\nconnection:[^\r]*", b"", answer, flags=re.I)
        return answer.replace(b"HTTP/1.0", b"HTTP/1.1", 1), body


def _length(head: bytes) -> int:
    found = re.search(rb"\r\ncontent-length:\s*(\d+)", head, re.I)
    return int(found[1]) if found else 0


PATIENT = "from recipe.pools.remote import asking; asking.LEAST_PATIENCE = asking.ANSWER_SECONDS = 600.0; "
"""For the code of other processes: as in ``store``."""


@contextmanager
def store(*, patient: bool = True) -> Iterator[Proxy]:
    """A server behind a proxy, each in threads; variables of the environment name it to every client.

    Who is patient makes no request a second time because this machine is slow: requests can be counted.
    """
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    port = server.get_host_and_port()[1]
    # Servers of one process share their buckets: those of an earlier test go.
    urlopen(Request(f"http://127.0.0.1:{port}/moto-api/reset", method="POST")).close()
    proxy = Proxy(port)
    started, loop, stop = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(proxy.serve(started.set, stop)))
    thread.start()
    started.wait()
    before = dict(os.environ)
    os.environ |= {
        "AWS_ENDPOINT_URL": proxy.address,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    s3fs.S3FileSystem.clear_instance_cache()
    patch = pytest.MonkeyPatch()
    if patient:
        for module, name in (
            (asking, "LEAST_PATIENCE"),
            (asking, "ANSWER_SECONDS"),
            (remote, "ANSWER_SECONDS"),
        ):
            patch.setattr(module, name, 600.0)
    try:
        yield proxy
    finally:
        patch.undo()
        s3fs.S3FileSystem.clear_instance_cache()
        os.environ.clear()
        os.environ.update(before)
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
        server.stop()


def upload(folder: Path, url: str) -> None:
    """Put every file of a folder below a URL."""
    system, path = fsspec.url_to_fs(url)
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            system.pipe(f"{path}/{file.relative_to(folder).as_posix()}", file.read_bytes())
