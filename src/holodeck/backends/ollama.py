"""The ``ollama`` provider: models that Ollama serves.

The answer is read here and not by Ollama's client: that ends a line at characters which may stand inside of one, and fails on fields that
it does not know or does not find.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from ollama import AsyncClient, ResponseError
from semantic_kernel.connectors.ai.ollama import OllamaChatCompletion, OllamaChatPromptExecutionSettings
from semantic_kernel.connectors.ai.prompt_execution_settings import PromptExecutionSettings
from semantic_kernel.contents import FunctionCallContent, StreamingChatMessageContent, StreamingTextContent

from holodeck.backends.connectors import Connection, http_client, present, settings_with_tools
from holodeck.backends.events import field_of, text_of
from holodeck.backends.kernel import NO_ENV_FILE
from holodeck.backends.openai_stream import chunk_of, finish_of
from holodeck.backends.places import base_of
from holodeck.backends.said import ReportedError
from holodeck.models.llm import LLMConfig
from holodeck.models.tool_execution import ToolSpec
from holodeck.version import __version__

__all__ = ["ollama_connection"]

_URL: Final = "http://localhost:11434"


class _Client(AsyncClient):
    async def _request(self, cls: Any, *args: Any, stream: bool = False, **kwargs: Any) -> Any:
        return self._parts(*args, **kwargs) if stream else await super()._request(cls, *args, **kwargs)

    async def _parts(self, *args: Any, **kwargs: Any) -> AsyncIterator[dict[str, Any]]:
        async with self._client.stream(*args, **kwargs) as response:
            if not response.is_success:
                await response.aread()
                error = ResponseError(f"Error code: {response.status_code}", response.status_code)
                error.response = response  # type: ignore[attr-defined]  # as the other providers' errors have it
                raise error
            async for line in _lines(response.aiter_bytes()):
                yield _part(line)


async def _lines(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    held = bytearray()
    async for piece in body:
        held += piece
        if b"\n" in piece:
            *lines, rest = held.split(b"\n")
            held = bytearray(rest)
            for line in filter(bytes.strip, map(bytes, lines)):
                yield line
    if held.strip():
        yield bytes(held)


def _part(line: bytes) -> dict[str, Any]:
    part = json.loads(line.decode("utf-8-sig", "replace"))
    if not isinstance(part, dict):
        raise TypeError("a line is not a JSON object")
    if error := part.get("error"):
        raise ReportedError(error)
    return part


class _Ollama(OllamaChatCompletion):
    def _prepare_chat_history_for_request(self, chat_history: Any, role_key: str = "role", content_key: str = "content") -> Any:
        prepared = super()._prepare_chat_history_for_request(chat_history, role_key, content_key)
        for entry, message in zip(prepared, chat_history.messages, strict=True):
            if entry.role == "tool":  # there are no ids: the name says which of several calls it answers
                entry.tool_name = message.items[0].name
        return prepared

    def _create_streaming_chat_message_content(
        self,
        part: Mapping[str, Any],
        function_invoke_attempt: int,  # noqa: ARG002 - Semantic Kernel's signature
    ) -> StreamingChatMessageContent:
        message = part.get("message")
        text, calls = text_of(field_of(message, "content")), field_of(message, "tool_calls")
        items: list[Any] = [StreamingTextContent(choice_index=0, text=text)] if text else []
        items += [_call(call) for call in (calls if isinstance(calls, list) else ()) if isinstance(field_of(call, "function"), dict)]
        finish = finish_of(part.get("done_reason") or "stop") if part.get("done") is True else None
        (content,) = chunk_of(self.ai_model_id, items, finish=finish, source=part, usage=_usage(part))
        return content


def _call(call: Mapping[str, Any]) -> FunctionCallContent:
    function, identity = call["function"], call.get("id")
    name, arguments = str(function.get("name") or ""), function.get("arguments")
    arguments = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments)
    return FunctionCallContent(id=identity if isinstance(identity, str) else None, name=name, function_name=name, arguments=arguments)


def _usage(part: Mapping[str, Any]) -> Any:
    """The counts of the last line, under the names that OpenAI has for them."""
    if part.get("done") is not True:
        return None
    return SimpleNamespace(prompt_tokens=part.get("prompt_eval_count"), completion_tokens=part.get("eval_count"))


def ollama_connection(config: LLMConfig, environ: Mapping[str, str]) -> Connection:
    """A connection to ``config.endpoint``, or this machine; with the model's key if it has one."""
    del environ
    url = config.endpoint or _URL
    base, query = base_of(url)
    client = http_client(_Client, host=base, params=query, auth=_login(base))
    headers = client._client.headers  # noqa: SLF001 - it puts its own name there, and a key of the process's environment
    headers["user-agent"] = f"holodeck/{__version__}"
    headers.pop("authorization", None)
    if config.api_key:
        headers["authorization"] = f"Bearer {config.api_key.get_secret_value()}"
    service = _Ollama(ai_model_id=config.name, client=client, env_file_path=NO_ENV_FILE)
    options = present(temperature=config.temperature, top_p=config.top_p, num_predict=config.max_tokens)

    def settings(tools: Sequence[ToolSpec]) -> PromptExecutionSettings:
        # Ollama's client keeps type, items, description and enum of a property, and drops the rest.
        return settings_with_tools(OllamaChatPromptExecutionSettings(options=options or None), tools, inline=True)

    return Connection(service, settings, url, [client._client.aclose])  # noqa: SLF001 - the client has no public way to be closed


def _login(url: str) -> tuple[str, str] | None:
    """User and password of a URL; Ollama's client drops them."""
    parts = urlsplit(url)
    return (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
