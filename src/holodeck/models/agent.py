"""AgentConfig: an agent as its YAML file describes it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from holodeck.models.base import Float, HttpUrl, Int, Strict
from holodeck.models.llm import LLMConfig
from holodeck.models.observability import ObservabilityConfig
from holodeck.models.tool_name import MAX_TOOL_NAME, TOOL_NAME

__all__ = ["AgentConfig", "FunctionTool", "Instructions", "McpTool", "PromptTool", "ToolConfig"]

_DEFAULT_TOOL_TIMEOUT = 60.0


class Instructions(Strict):
    """The system prompt: exactly one of ``inline`` and ``file``.

    Attributes:
        inline: The text itself.
        file: A text file, relative to the agent file.
    """

    inline: str | None = None
    file: Path | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.inline is None) == (self.file is None):
            raise ValueError("needs exactly one of 'inline' and 'file'")
        return self


class _Tool(Strict):
    """What every tool has.

    Attributes:
        name: Name the model calls; letters, digits, ``_``, ``-``, at most 64.
        description: What the model is told.
        timeout: Seconds after which a call is given up.
        approval: ``ask``: a call runs only once the user has allowed it. Without a terminal it is denied, unless ``--yes`` is given.
    """

    name: str
    description: str = ""
    approval: Literal["auto", "ask"] = "auto"
    timeout: Float = Field(default=_DEFAULT_TOOL_TIMEOUT, gt=0)

    @field_validator("name")
    @classmethod
    def _name_can_be_called(cls, value: str) -> str:
        if not re.fullmatch(TOOL_NAME, value):
            raise ValueError(f"{value!r} cannot be a tool name: use 1 to {MAX_TOOL_NAME} letters, digits, '_' and '-'")
        return value


class FunctionTool(_Tool):
    """A Python callable.

    Attributes:
        type: ``function``.
        file: Python file, relative to the agent file; without it ``function`` is ``module:name``.
        function: Name of the callable in ``file``, or ``module:name``.
        parameters: What the model may pass: a JSON Schema object, or a short mapping ``name: {type, description, …}``;
            without it signature and docstring say so.
    """

    type: Literal["function"]
    file: Path | None = None
    function: str
    parameters: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _function_can_be_found(self) -> Self:
        if self.file is None and self.function.count(":") != 1:
            raise ValueError("needs 'file: tools.py', or 'function: module:name'")
        return self


class McpTool(_Tool):
    """A Model Context Protocol server; each of its tools is offered as ``{name}-{tool}``.

    Attributes:
        type: ``mcp``.
        transport: ``stdio`` (``command``, ``args``, ``env``) or ``http`` (streamable HTTP: ``url``, ``headers``).
        command: The program that is started.
        args: Its arguments.
        env: Environment variables it gets.
        url: Where the server answers.
        headers: Sent with each request; secret.
    """

    type: Literal["mcp"]
    transport: Literal["stdio", "http"] = "stdio"
    command: str | None = None
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    url: HttpUrl | None = None
    headers: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fields_fit_the_transport(self) -> Self:
        wanted, foreign = (("command", ("url", "headers")), ("url", ("command", "args", "env")))[self.transport == "http"]
        if not getattr(self, wanted):
            raise ValueError(f"transport '{self.transport}' needs '{wanted}'")
        if stray := [key for key in foreign if getattr(self, key)]:
            raise ValueError(f"'{stray[0]}' does nothing for transport '{self.transport}'")
        return self


class PromptTool(_Tool):
    """A template that asks the model; ``{{name}}`` stands for an argument.

    Attributes:
        type: ``prompt``.
        template: The template, if there is no ``file``.
        file: A text file with the template, relative to the agent file, if there is no ``template``.
        parameters: As for a function tool; without it every ``{{name}}`` of the template is a string.
        model: Which model is asked; the agent's own by default.
    """

    type: Literal["prompt"]
    template: str | None = None
    file: Path | None = None
    parameters: dict[str, Any] | None = None
    model: LLMConfig | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.template is None) == (self.file is None):
            raise ValueError("needs exactly one of 'template' and 'file'")
        return self


ToolConfig = Annotated[FunctionTool | McpTool | PromptTool, Field(discriminator="type")]
"""One entry of ``tools``, told apart by its ``type``."""


class AgentConfig(Strict):
    """An agent: who it is, which model answers, what it may do, and how it is observed.

    Attributes:
        name: The agent's name; ``gen_ai.agent.name`` and the name of its spans.
        description: What it is for; ``gen_ai.agent.description``.
        model: Which model answers.
        instructions: The system prompt; none by default.
        tools: What the model may call.
        max_rounds: Most model requests in one turn.
        observability: How its turns are observed.
    """

    name: str = Field(min_length=1, max_length=200)
    description: str | None = None
    model: LLMConfig
    instructions: Instructions | None = None
    tools: list[ToolConfig] = Field(default_factory=list)
    max_rounds: Int = Field(default=10, gt=0)
    observability: ObservabilityConfig = Field(default_factory=ObservabilityConfig)

    @field_validator("name")
    @classmethod
    def _name_is_not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("cannot be blank")
        return value.strip()

    @field_validator("tools")
    @classmethod
    def _tool_names_differ(cls, value: list[ToolConfig]) -> list[ToolConfig]:
        names = [tool.name for tool in value]
        if double := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two tools are named {double!r}")
        return value
