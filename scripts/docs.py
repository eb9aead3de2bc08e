"""Write the parts of the documentation that the code knows: ``python scripts/docs.py`` (``--check`` says what would change, and fails)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from holodeck.cli.slash import COMMANDS
from holodeck.config import agent_schema
from holodeck.telemetry import semconv

ROOT = Path(__file__).parents[1]
_SECTIONS = (
    ("AgentConfig", "The agent"),
    ("LLMConfig", "`model`"),
    ("Price", "`model.price`"),
    ("Instructions", "`instructions`"),
    ("FunctionTool", "`tools`: `type: function`"),
    ("McpTool", "`tools`: `type: mcp`"),
    ("PromptTool", "`tools`: `type: prompt`"),
    ("ObservabilityConfig", "`observability`"),
    ("TracesConfig", "`observability.traces`"),
    ("MetricsConfig", "`observability.metrics`"),
    ("LogsConfig", "`observability.logs`"),
    ("ExportersConfig", "`observability.exporters`"),
    ("ConsoleConfig", "`observability.exporters.console`"),
    ("OtlpConfig", "`observability.exporters.otlp`"),
)


def generated() -> dict[Path, dict[str, str]]:
    """For each file the text between ``<!-- name -->`` and ``<!-- /name -->``; without a name the whole file."""
    return {
        ROOT / "docs/agent-file.md": {"keys": _keys()},
        ROOT / "README.md": {"commands": _commands()},
        ROOT / "docs/chat.md": {"commands": _commands()},
        ROOT / "docs/telemetry.md": {"attributes": semconv.table()},
        ROOT / "docs/semconv/registry.yaml": {"": semconv.registry()},
    }


def _commands() -> str:
    rows = [f"| `{command.usage}` | {command.help} |" for command in COMMANDS.values()]
    return "\n".join(["| command | effect |", "| --- | --- |", *rows, ""])


def _keys() -> str:
    schema = agent_schema()
    models = schema["$defs"] | {"AgentConfig": schema}
    return "\n".join(_section(models[name], title) for name, title in _SECTIONS)


def _section(model: dict[str, Any], title: str) -> str:
    required = set(model.get("required", ()))
    shown = {k: v for k, v in model["properties"].items() if v.keys() != {"description"} and not v.get("deprecated")}
    rows = [
        f"| `{key}` | {_type(value)} | {_default(value, key in required)} | {value.get('description', '')} |"
        for key, value in shown.items()
    ]
    return "\n".join([f"### {title}", "", "| key | value | default | meaning |", "| --- | --- | --- | --- |", *rows, ""])


def _type(value: dict[str, Any]) -> str:
    if "$ref" in value:
        return "section" if not value["$ref"].endswith("Provider") else "word"
    if "anyOf" in value:
        kinds = [_type(v) for v in value["anyOf"] if v.get("type") != "null" and "pattern" not in v]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in value or "const" in value:
        return ", ".join(f"`{v}`" for v in value.get("enum", [value.get("const")]))
    names = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
        "array": "list",
        "object": "mapping",
    }
    return names[value["type"]]


def _default(value: dict[str, Any], is_required: bool) -> str:
    if is_required:
        return "**required**"
    default = value.get("default")
    return "" if default in (None, "", [], {}) else f"`{str(default).lower() if isinstance(default, bool) else default}`"


def render(path: Path, parts: dict[str, str]) -> str:
    """``path``'s text with its generated parts renewed."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for name, part in parts.items():
        if not name:
            return part
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        head, _, rest = text.partition(begin)
        if end not in rest:
            raise SystemExit(f"{path.relative_to(ROOT)}: {end} is missing: what follows the generated part would be lost")
        text = head + begin + part + end + rest.partition(end)[2]
    return text


def main(arguments: list[str]) -> int:
    """Write, or check."""
    stale = [path for path, parts in generated().items() if not path.exists() or path.read_text(encoding="utf-8") != render(path, parts)]
    if "--check" in arguments:
        for path in stale:
            sys.stderr.write(f"{path.relative_to(ROOT)} is not what the code says: run scripts/docs.py\n")
        return 1 if stale else 0
    for path in stale:
        path.write_text(render(path, generated()[path]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
