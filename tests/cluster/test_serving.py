"""A model behind Ray Serve: rows alone and together, by handle and by HTTP, and what does not fit."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request

import numpy as np
import pytest
import torch
from torch import nn

import pipeline
from pipeline.errors import ArgumentError, OptionError, PipelineError
from pipeline.ray import deployment


class Net(nn.Module):
    """Looks rows up, of which there are five; says how many rows a call has."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(5, 3)

    def forward(self, x, index):
        return {"y": x * 2 + self.table(index), "rows": torch.full_like(index, x.shape[0])}


@pytest.fixture
def serve(cluster):
    """Ray Serve, and a function that answers by HTTP."""
    from ray import serve

    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # as the server's socket: no other gets the port
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        serve.start(http_options={"host": "127.0.0.1", "port": port})

    def post(value):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/", json.dumps(value).encode())
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    serve.post = post
    yield serve
    serve.shutdown()


def test_requests_are_batches(serve):
    net = Net().eval().requires_grad_(False)
    rows = torch.export.Dim("rows", max=64)
    example = (torch.randn(4, 3), torch.zeros(4, dtype=torch.int64))
    exe = pipeline.compile(net, example, dynamic_shapes=({0: rows}, {0: rows}))
    handle = serve.run(deployment(exe, wait=0.2, max_batch_size=4))
    x, index = torch.randn(8, 3), torch.tensor([0, 1, 2, 3, 4, 0, 1, 2])
    asked = [handle.infer.remote(one.numpy(), np.int64(row)) for one, row in zip(x, index, strict=True)]
    answers = [one.result(timeout_s=60) for one in asked]
    torch.testing.assert_close(torch.from_numpy(np.stack([one["y"] for one in answers])), net(x, index)["y"])
    assert 1 < max(int(one["rows"]) for one in answers) <= 4  # they went together

    wrong = handle.infer.remote(x[0].numpy(), np.int64(7))  # an index out of range spoils no other row
    right = handle.infer.remote(x[0].numpy(), index=np.int64(1))
    np.testing.assert_allclose(right.result(timeout_s=60)["y"], net(x[:1], index[1:2])["y"][0], rtol=1e-5)
    with pytest.raises(PipelineError, match="index"):
        wrong.result(timeout_s=60)
    with pytest.raises(ArgumentError, match=r"column x: expected rows of float32\[3\] for x, got rows of float64\[3\]"):
        handle.infer.remote(x[0].double().numpy(), np.int64(1)).result(timeout_s=60)
    with pytest.raises(ArgumentError, match="expected the arguments x, index, got x"):
        handle.infer.remote(x[0].numpy()).result(timeout_s=60)

    status, answer = serve.post({"x": x[0].tolist(), "index": 3})
    assert status == 200
    np.testing.assert_allclose(answer["y"], net(x[:1], index[3:4])["y"][0], rtol=1e-5)
    for value, message in [
        ({"x": [1, 2], "index": 3}, "column x: expected rows of float32[3]"),
        ({"x": [1, 2, "a"], "index": 3}, "argument x: could not convert"),
        ({"x": [1, 2, 3]}, "expected the arguments x, index, got x"),
        ({"x": [1, 2, 3], "index": 9}, "index"),
    ]:
        status, answer = serve.post(value)
        assert status == 400 and message in answer["error"], answer


def test_what_cannot_be_served():
    net = Net().eval()
    with pytest.raises(OptionError, match="artifact: expected an artifact or an Executable, got Net: compile it"):
        deployment(net)
    with pytest.raises(pipeline.ArtifactError, match="nowhere.pipeline: cannot be read"):
        deployment("nowhere.pipeline")
    exe = pipeline.compile(lambda x: x + 1, (torch.tensor(1.0),))
    with pytest.raises(ArgumentError, match="has no rows"):
        deployment(exe)
    exe = pipeline.compile(lambda x: x + 1, (torch.ones(4, 1),))
    for options, message in [
        ({"threads": 0}, "threads: expected a number from 1"),
        ({"max_batch_size": -1}, "max_batch_size: expected a number from 1"),
    ]:
        with pytest.raises(OptionError, match=message):
            deployment(exe, **options)
