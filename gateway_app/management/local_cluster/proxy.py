"""nginx in front of the web processes, with the settings of ``deploy/nginx``."""

import shutil
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from gateway_app.management.local_cluster.children import Child
from gateway_app.management.local_cluster.programs import Report, require_program

TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
CONNECT_SECS = 2

CONFIGURATION = """\
daemon off;
pid {folder}/nginx.pid;
error_log stderr warn;
worker_processes 1;
events {{ worker_connections 4096; }}
http {{
    access_log off;
{temporary}
    map $http_upgrade $connection_upgrade {{ default upgrade; "" ""; }}
    upstream hermes {{
        least_conn;
{servers}
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{ include {proxy_settings}; }}
    }}
}}
"""


class Proxy:
    def __init__(self, log: Path, port: int, web_ports: Sequence[int], report: Report) -> None:
        self._port = port
        program = require_program("nginx", "nginx-light", report)
        # Not in HERMES_HOME: nginx gives up the rights of root, and could not enter it.
        self._folder = Path(tempfile.mkdtemp(prefix="hermes-nginx-"))
        self._folder.chmod(0o711)
        file = self._folder / "nginx.conf"
        file.write_text(self._configuration(web_ports))
        command = [program, "-e", "stderr", "-p", str(self._folder), "-c", str(file)]
        self.child = Child("nginx", command, log, self._listens)

    def remove_files(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _configuration(self, web_ports: Sequence[int]) -> str:
        servers = [f"        server 127.0.0.1:{port} fail_timeout=2s;" for port in web_ports]
        temporary = [f"    {name}_temp_path {self._folder}/{name};" for name in TEMPORARY]
        return CONFIGURATION.format(
            folder=self._folder,
            port=self._port,
            servers="\n".join(servers),
            temporary="\n".join(temporary),
            proxy_settings=settings.BASE_DIR / "deploy" / "nginx" / "hermes-proxy.conf",
        )

    def _listens(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), CONNECT_SECS):
                return True
        except OSError:
            return False
