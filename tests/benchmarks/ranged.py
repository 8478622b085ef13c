"""nginx as a store: objects of one folder by ranges of one version, and their listing; fast, and no more."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

CONFIG = """
{user}
worker_processes 1;
daemon off;
{modules}
pid {scratch}/nginx.pid;
error_log {scratch}/nginx.log warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  default_type application/octet-stream;
  keepalive_requests 1000000;
  open_file_cache max=4096;
  map $args $listed {{ default 0; ~list-type 1; }}
  client_body_temp_path {scratch}/body; proxy_temp_path {scratch}/proxy; fastcgi_temp_path {scratch}/fastcgi;
  uwsgi_temp_path {scratch}/uwsgi; scgi_temp_path {scratch}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      if ($listed) {{ rewrite ^ /listing.xml last; }}
      echo_sleep {latency};
      echo_exec @objects;
    }}
    location @objects {{ root {root}; }}
    location = /listing.xml {{ root {scratch}; types {{ application/xml xml; }} }}
  }}
}}
"""
MODULES = Path("/usr/share/nginx/modules-available/mod-http-echo.conf")


def is_there() -> bool:
    """Whether nginx and what makes it wait are installed (Debian: nginx-light, libnginx-mod-http-echo)."""
    return shutil.which("nginx") is not None and MODULES.exists()


@contextmanager
def serving(folder: Path, scratch: Path, latency: float) -> Iterator[str]:
    """The address of a server with ``folder`` as ``s3://BUCKET/NAME``: the names of its last two folders."""
    scratch.mkdir(parents=True, exist_ok=True)
    (scratch / "listing.xml").write_text(_listing(folder))
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Workers of root would be nobody, who may read no scratch folder.
    user = "user root;" if os.geteuid() == 0 else ""
    values = {
        "user": user,
        "scratch": scratch,
        "port": port,
        "latency": latency,
        "root": folder.parent.parent,
    }
    config = scratch / "nginx.conf"
    config.write_text(CONFIG.format(modules=MODULES.read_text(), **values))
    server = subprocess.Popen(["nginx", "-e", str(scratch / "nginx.log"), "-c", str(config)])
    try:
        address = f"http://127.0.0.1:{port}"
        _wait(f"{address}/{folder.parent.name}?list-type=2")
        yield address
    finally:
        server.terminate()
        server.wait()


def _wait(url: str) -> None:
    for _ in range(100):
        try:
            urlopen(url).close()
        except URLError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(url)


def _listing(folder: Path) -> str:
    """As S3 lists a folder; ETags are those that nginx gives."""
    entries = []
    for file in sorted(folder.iterdir()):
        state = file.stat()
        entries.append(
            f"<Contents><Key>{folder.name}/{file.name}</Key><LastModified>2024-01-01T00:00:00.000Z"
            f"</LastModified><ETag>&quot;{int(state.st_mtime):x}-{state.st_size:x}&quot;</ETag>"
            f"<Size>{state.st_size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
        )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>{folder.parent.name}</Name><Prefix>{folder.name}/</Prefix><KeyCount>{len(entries)}</KeyCount>"
        f"<MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{''.join(entries)}</ListBucketResult>"
    )
