"""examples/serve_completions.py behind a socket: each request has the tokens that it gets alone."""

from __future__ import annotations

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
import uvicorn
from generation.small_models import VOCABULARY, prompt, small_model
from tokenizers import Tokenizer, models, pre_tokenizers

import pipeline

sys.path.append(str(Path(__file__).parents[2] / "examples"))  # scripts, not a package

import serve_completions


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A client of a saved model of two rows, and a model of its own for what is expected."""
    folder = tmp_path_factory.mktemp("served")
    tokenizer = Tokenizer(models.WordLevel({f"w{number}": number for number in range(VOCABULARY)}, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    lm = pipeline.generation.compile(small_model("llama"), max_length=64, batch=2)
    lm.save(folder / "lm.pipeline", tokenizer=folder / "tokenizer.json")
    app = serve_completions.application(pipeline.generation.load(folder / "lm.pipeline"), "small")
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    (port,) = (socket.getsockname()[1] for one in server.servers for socket in one.sockets)
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        yield client, lm
    server.should_exit = True
    thread.join()


def text_of(ids):
    return " ".join(f"w{token}" for token in ids)


def streamed(client, body):
    """The choices of a stream."""
    with client.stream("POST", "/v1/completions", json=body | {"stream": True}) as response:
        assert response.status_code == 200 and response.headers["content-type"].startswith("text/event-stream")
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line)["choices"][0] for line in lines[:-1]]


def test_requests_side_by_side_have_the_tokens_of_each_alone(served):
    client, lm = served
    lengths = [(3, 30), (9, 5), (20, 12), (1, 25), (6, 40), (30, 3)]
    prompts = [prompt(1, length, seed)[0].tolist() for seed, (length, _) in enumerate(lengths)]
    wanted = [
        lm.generate([ids], max_new_tokens=count)[0, len(ids) :].tolist()
        for ids, (_, count) in zip(prompts, lengths, strict=True)
    ]

    def ask(number):
        time.sleep(0.01 * number)
        body = {"prompt": prompts[number], "max_tokens": lengths[number][1]}
        if number % 2:
            choices = streamed(client, body)
            assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + ["length"]
            return "".join(choice["text"] for choice in choices), [choice["token_ids"][0] for choice in choices]
        answer = client.post("/v1/completions", json=body).json()
        assert answer["object"] == "text_completion" and answer["model"] == "small"
        assert answer["usage"]["prompt_tokens"] == lengths[number][0]
        assert answer["usage"]["completion_tokens"] == lengths[number][1]
        return answer["choices"][0]["text"], answer["choices"][0]["token_ids"]

    with ThreadPoolExecutor(len(lengths)) as pool:
        found = list(pool.map(ask, range(len(lengths))))
    assert [tokens for _, tokens in found] == wanted
    assert [text.split() for text, _ in found] == [text_of(tokens).split() for tokens in wanted]


def test_text_and_clients_that_leave(served):
    client, lm = served
    ids = prompt(1, 7)[0].tolist()
    wanted = lm.generate([ids], max_new_tokens=9)[0, 7:].tolist()
    for _ in range(3):  # more than there are rows
        with client.stream("POST", "/v1/completions", json={"prompt": ids, "max_tokens": 50, "stream": True}) as answer:
            next(answer.iter_lines())
    answer = client.post("/v1/completions", json={"prompt": text_of(ids), "max_tokens": 9}).json()
    assert answer["choices"][0]["token_ids"] == wanted and answer["choices"][0]["text"] == text_of(wanted)
    drawn = {"prompt": ids, "max_tokens": 9, "temperature": 3, "top_p": 0.9}
    assert len(client.post("/v1/completions", json=drawn).json()["choices"][0]["token_ids"]) == 9
    assert client.get("/v1/models").json()["data"][0]["id"] == "small"


def test_what_is_wrong_is_said(served):
    client, _ = served
    for body, message in (({"prompt": []}, "expected one token at least"), ({"prompt": [5], "max_tokens": 99}, "64")):
        answer = client.post("/v1/completions", json=body)
        assert answer.status_code == 400 and message in answer.json()["detail"]
    for body in ({"max_tokens": 3}, {"prompt": [5], "best_of": 2}):
        assert client.post("/v1/completions", json=body).status_code == 422
