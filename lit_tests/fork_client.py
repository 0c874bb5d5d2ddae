"""pipeline-opt as a fork of the process that `fork_server.py` is; itself where that does not run.

fork_client.py <socket> <arguments of pipeline-opt>
"""

import json
import os
import socket
import sys

path, *arguments = sys.argv[1:]
connection = socket.socket(socket.AF_UNIX)
try:
    connection.connect(path)
except OSError:  # a command line of lit's, tried by hand
    os.execv(sys.executable, [sys.executable, "-m", "pipeline.tools.opt", *arguments])
request = json.dumps([os.getcwd(), dict(os.environ), arguments]).encode()
socket.send_fds(connection, [request[:1]], [0, 1, 2])
connection.sendall(request[1:])
connection.shutdown(socket.SHUT_WR)
code = connection.recv(16)
if not code:
    sys.exit("pipeline-opt: the process that ran it died")
sys.exit(int(code))
