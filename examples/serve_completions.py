"""A language model behind an endpoint like OpenAI's: requests join and leave the rows of its cache between steps.

Usage:
  pip install fastapi uvicorn tokenizers
  pipeline-generate checkpoint/ --max-length=1024 --batch=8 -o model.pipeline
  python examples/serve_completions.py model.pipeline --port=8000
  curl localhost:8000/v1/completions -H 'Content-Type: application/json' \
    -d '{"prompt": "The sea is", "max_tokens": 50, "stream": true}'

A prompt is text, which the tokenizer in the file reads, or a list of tokens. Neither PyTorch nor a compiler is needed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import queue
import threading
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict

import pipeline
from pipeline.errors import PipelineError
from pipeline.generation.language_model import LanguageModel
from pipeline.generation.rows import TextRow

#: What a tokenizer gives for bytes that are not yet a whole character.
_UNFINISHED = "\ufffd"


class Completion(BaseModel):
    """The body of a request; what is left out is that of the model's generation config, what is not here is refused.

    Tokens are drawn with a temperature above 0, and the likeliest ones with 0.
    """

    model_config = ConfigDict(extra="forbid")

    prompt: str | list[int]
    model: str = ""
    max_tokens: int = 16
    temperature: float | None = None
    top_p: float | None = None
    stream: bool = False


@dataclass(eq=False)
class Request:
    """A text on its way: tokens come into `events` as (token, reason), or an error."""

    ids: list[int]
    settings: dict[str, Any]
    loop: asyncio.AbstractEventLoop
    events: asyncio.Queue[tuple[int, str | None] | PipelineError] = field(default_factory=asyncio.Queue)
    is_given_up: bool = False

    def put(self, event: tuple[int, str | None] | PipelineError) -> None:
        """From the thread that computes."""
        with contextlib.suppress(RuntimeError):  # the server has stopped
            self.loop.call_soon_threadsafe(self.events.put_nowait, event)


class Engine:
    """The thread that computes: between two steps it takes requests that wait into free rows."""

    def __init__(self, lm: LanguageModel):
        self._rows, self._waiting = lm.rows(), queue.SimpleQueue[Request | None]()
        self._running: dict[TextRow, Request] = {}
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    def submit(self, request: Request) -> None:
        """Takes a request, whose tokens come as they are known."""
        self._waiting.put(request)

    def close(self) -> None:
        """Ends the thread; texts that are on their way get no more tokens."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while self._admit():
            try:
                for row, token in self._rows.step():
                    self._running[row].put((token, row.reason))
            except PipelineError as error:
                for row, request in self._running.items():
                    self._rows.end(row)
                    request.put(error)
            for row, request in list(self._running.items()):
                if request.is_given_up:
                    self._rows.end(row)
                if row.is_done:
                    del self._running[row]
        for request in self._running.values():
            request.put(PipelineError("the server stops"))

    def _admit(self) -> bool:
        """Starts texts while rows are free; waits for one where there is none. False at the end."""
        while self._rows.free:
            try:
                request = self._waiting.get(block=not self._running)
            except queue.Empty:
                return True
            if request is None:
                return False
            try:
                self._running[self._rows.start(request.ids, **request.settings)] = request
            except PipelineError as error:
                request.put(error)
        return True


class Texts:
    """What a tokenizer makes of tokens, as far as it is whole characters; of a model without one, their numbers."""

    def __init__(self, tokenizer: Any):
        self._tokenizer, self._ids, self._told = tokenizer, list[int](), ""

    def piece(self, token: int, is_last: bool) -> str:
        """The text that a token adds."""
        self._ids.append(token)
        if self._tokenizer is None:
            return f"{' ' if len(self._ids) > 1 else ''}{token}"
        text = self._tokenizer.decode(self._ids)
        if not is_last and (text.endswith(_UNFINISHED) or not text.startswith(self._told)):
            return ""
        piece, self._told = text[len(self._told) :], text
        return piece


def application(lm: LanguageModel, name: str = "model") -> FastAPI:
    """The endpoints `/v1/models` and `/v1/completions` for a model."""
    tokenizer = None
    if lm.tokenizer is not None:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(lm.tokenizer.decode())
    engines: list[Engine] = []

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        engines.append(Engine(lm))
        yield
        engines.pop().close()

    app = FastAPI(lifespan=lifespan)

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "pipeline"}]}

    @app.post("/v1/completions")
    async def completions(body: Completion) -> Any:
        request = Request(_ids(body.prompt, tokenizer), _settings(body), asyncio.get_running_loop())
        engines[0].submit(request)
        head = {"id": f"cmpl-{uuid.uuid4().hex}", "object": "text_completion", "created": int(time.time())}
        head["model"] = body.model or name
        events = _events(request, Texts(tokenizer))
        try:
            first = await anext(events)
        except PipelineError as error:
            raise HTTPException(400, str(error)) from error
        if body.stream:
            return StreamingResponse(_server_sent(head, first, events), media_type="text/event-stream")
        found = [first, *[event async for event in events]]
        tokens = [token for _, token, _ in found]
        choice = _choice("".join(piece for piece, _, _ in found), tokens, found[-1][2])
        usage = {"prompt_tokens": len(request.ids), "completion_tokens": len(tokens)}
        usage["total_tokens"] = sum(usage.values())
        return head | {"choices": [choice], "usage": usage}

    return app


def _ids(prompt: str | list[int], tokenizer: Any) -> list[int]:
    if isinstance(prompt, list):
        return prompt
    if tokenizer is None:
        raise HTTPException(400, "the model has no tokenizer: give the prompt as a list of tokens")
    return list(tokenizer.encode(prompt).ids)


def _settings(body: Completion) -> dict[str, Any]:
    settings: dict[str, Any] = {"max_new_tokens": body.max_tokens, "top_p": body.top_p}
    if body.temperature is None:
        return settings
    return settings | {"do_sample": body.temperature > 0, "temperature": body.temperature or 1.0}


async def _events(request: Request, texts: Texts) -> AsyncIterator[tuple[str, int, str | None]]:
    """The text that each token adds, the token, and why it is the last one; whoever leaves early gives the row up."""
    try:
        while True:
            event = await request.events.get()
            if isinstance(event, PipelineError):
                raise event
            token, reason = event
            yield texts.piece(token, reason is not None), token, reason
            if reason is not None:
                return
    finally:
        request.is_given_up = True


async def _server_sent(head: dict[str, Any], first: Any, events: Any) -> AsyncIterator[str]:
    async with contextlib.aclosing(events):
        yield _line(head, *first)
        async for event in events:
            yield _line(head, *event)
    yield "data: [DONE]\n\n"


def _line(head: dict[str, Any], piece: str, token: int, reason: str | None) -> str:
    return f"data: {json.dumps(head | {'choices': [_choice(piece, [token], reason)]})}\n\n"


def _choice(text: str, tokens: list[int], reason: str | None) -> dict[str, Any]:
    return {"index": 0, "text": text, "token_ids": tokens, "logprobs": None, "finish_reason": reason}


def main() -> None:
    """Serves the model that the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", help="what LanguageModel.save or pipeline-generate -o wrote")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    uvicorn.run(application(pipeline.generation.load(arguments.model)), host=arguments.host, port=arguments.port)


if __name__ == "__main__":
    main()
