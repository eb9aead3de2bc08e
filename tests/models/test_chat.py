from __future__ import annotations

import subprocess
import sys
import warnings
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from holodeck.errors import SessionError
from holodeck.models.agent import AgentConfig
from holodeck.models.chat import ChatConfig, ChatSession, Message, MessageRole, SessionState
from holodeck.models.token_usage import TokenUsage
from holodeck.models.tool_execution import ToolExecution

if TYPE_CHECKING:
    from pathlib import Path

AGENT = AgentConfig.model_validate({"name": "a", "model": {"provider": "local", "name": "smollm2"}})


@pytest.fixture(scope="session")
def history_class() -> Any:
    """Semantic Kernel's class; its import warns about its own dependencies, which is not what is tested here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from semantic_kernel.contents import ChatHistory
    return ChatHistory


class TestMessage:
    def test_a_message_has_a_time_and_nothing_else_by_default(self) -> None:
        """Time is aware and UTC; there are no tool calls, and usage is unknown."""
        message = Message(role="user", content="hi")
        assert (message.role, message.tool_calls, message.tokens_used) == (MessageRole.USER, [], None)
        assert message.timestamp.tzinfo is UTC
        assert datetime.now(UTC) - message.timestamp < timedelta(seconds=5)

    def test_roles_are_three_words(self) -> None:
        """Other roles are refused."""
        assert [role.value for role in MessageRole] == ["user", "assistant", "system"]
        with pytest.raises(ValidationError, match="role"):
            Message(role="tool", content="x")

    @pytest.mark.parametrize("content", ["", " ", "\n\t "])
    @pytest.mark.parametrize("role", list(MessageRole))
    def test_content_is_never_blank(self, role: MessageRole, content: str) -> None:
        """White space is not a message, whoever speaks."""
        with pytest.raises(ValidationError, match="content"):
            Message(role=role, content=content)

    def test_content_is_stripped_before_it_is_counted(self) -> None:
        """Ten thousand characters with white space around them are a user message."""
        assert Message(role="user", content="  " + "x" * 10_000 + "\n").content == "x" * 10_000

    def test_only_users_have_a_limit(self) -> None:
        """A user's 10,001 characters are refused, an assistant's are not."""
        with pytest.raises(ValidationError, match="User message exceeds 10,000 character limit"):
            Message(role="user", content="x" * 10_001)
        assert len(Message(role="assistant", content="x" * 10_001).content) == 10_001

    @pytest.mark.parametrize("role", ["user", "system"])
    def test_only_assistants_call_tools(self, role: str) -> None:
        """Tool calls elsewhere are refused, however the message is made."""
        call = ToolExecution(tool_name="t")
        assert Message(role="assistant", content="x", tool_calls=[call]).tool_calls == [call]
        for make in (
            lambda: Message(role=role, content="x", tool_calls=[call]),
            lambda: Message.model_validate_json(f'{{"role": "{role}", "content": "x", "tool_calls": [{{"tool_name": "t"}}]}}'),
        ):
            with pytest.raises(ValidationError, match="Tool calls only allowed for assistant messages"):
                make()

    @pytest.mark.parametrize("role", ["user", "assistant", "system"])
    def test_a_call_cannot_be_slipped_in_afterwards(self, role: str) -> None:
        """The list of a message cannot be changed, and is no other's list: the rule about roles holds for good."""
        calls = [ToolExecution(tool_name="t")] if role == "assistant" else []
        message = Message(role=role, content="x", tool_calls=calls)
        for make in (message, Message(role=role, content="x")):
            with pytest.raises(TypeError, match="frozen value"):
                make.tool_calls.append(ToolExecution(tool_name="t"))
        calls.append(ToolExecution(tool_name="late"))
        assert [call.tool_name for call in message.tool_calls] == (["t"] if role == "assistant" else [])

    def test_a_message_round_trips_through_json(self) -> None:
        """What is written out is what is read back."""
        message = Message(
            role="assistant",
            content="x",
            tool_calls=[ToolExecution(tool_name="t").running().succeeded("r", 0.5)],
            tokens_used=TokenUsage.of(1, 2),
        )
        assert Message.model_validate_json(message.model_dump_json()) == message

    def test_a_message_is_a_closed_frozen_value(self) -> None:
        """Unknown fields and changes are refused."""
        with pytest.raises(ValidationError, match="Extra inputs"):
            Message(role="user", content="x", name="y")
        with pytest.raises(ValidationError, match="frozen"):
            Message(role="user", content="x").content = "y"


class TestTimes:
    @pytest.mark.parametrize("field", ["timestamp"])
    def test_naive_and_future_times_are_refused(self, field: str) -> None:
        """A time without a zone is not guessed; a time to come has not been."""
        with pytest.raises(ValidationError, match="must carry a time zone"):
            Message(role="user", content="x", **{field: datetime(2025, 1, 1)})  # noqa: DTZ001 - naive on purpose
        with pytest.raises(ValidationError, match="cannot be in the future"):
            Message(role="user", content="x", **{field: datetime.now(UTC) + timedelta(minutes=1)})

    def test_other_zones_become_utc(self) -> None:
        """The moment stays, the zone is UTC."""
        there = datetime(2025, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
        message = Message(role="user", content="x", timestamp=there)
        assert (message.timestamp, message.timestamp.tzinfo) == (there, UTC)


class TestChatSession:
    def test_a_session_starts_out_initializing(self, history_class: Any) -> None:
        """Id, start and state come by themselves; nothing has been said."""
        first = ChatSession(agent_config=AGENT, history=history_class())
        assert isinstance(first.session_id, UUID)
        assert first.session_id != ChatSession(agent_config=AGENT, history=history_class()).session_id
        assert (first.state, first.message_count, first.metadata) == (SessionState.INITIALIZING, 0, {})
        assert first.started_at <= datetime.now(UTC)
        assert isinstance(first.history, history_class)

    @pytest.mark.parametrize(
        ("field", "value", "words"),
        [
            ("session_id", "not-a-uuid", "UUID"),
            ("message_count", -1, "greater than or equal to 0"),
            ("message_count", True, "not true or false"),
            ("started_at", datetime.now(UTC) + timedelta(days=1), "cannot be in the future"),
            ("started_at", datetime(2025, 1, 1), "must carry a time zone"),  # noqa: DTZ001 - naive on purpose
            ("history", [], "must be a semantic_kernel"),
            ("history", None, "must be a semantic_kernel"),
            ("agent_config", {"name": "a"}, "model"),
            ("surprise", 1, "Extra inputs"),
        ],
    )
    def test_what_breaks_a_rule_is_refused(self, field: str, value: Any, words: str, history_class: Any) -> None:
        """Each rule of the data model holds at construction."""
        fields = {"agent_config": AGENT, "history": history_class()} | {field: value}
        with pytest.raises(ValidationError, match=words):
            ChatSession(**fields)

    @pytest.mark.parametrize("field", ["agent_config", "history"])
    def test_agent_and_history_are_required(self, field: str, history_class: Any) -> None:
        """A session without them makes no sense."""
        fields = {"agent_config": AGENT, "history": history_class()}
        del fields[field]
        with pytest.raises(ValidationError, match="Field required"):
            ChatSession(**fields)

    def test_rules_hold_for_assignments_too(self, history_class: Any) -> None:
        """The count moves on, and not below zero."""
        session = ChatSession(agent_config=AGENT, history=history_class())
        session.message_count += 2
        assert session.message_count == 2
        with pytest.raises(ValidationError, match="greater than or equal to 0"):
            session.message_count = -1

    def test_the_state_moves_forward_only(self, history_class: Any) -> None:
        """INITIALIZING → ACTIVE → TERMINATED, and no other step."""
        session = ChatSession(agent_config=AGENT, history=history_class())
        with pytest.raises(SessionError, match="from initializing to terminated"):
            session.terminate()
        session.activate()
        with pytest.raises(SessionError, match="from active to active"):
            session.activate()
        with pytest.raises(SessionError, match="from active to initializing"):
            session.state = SessionState.INITIALIZING
        session.terminate()
        assert session.state is SessionState.TERMINATED
        for state in SessionState:
            with pytest.raises(SessionError, match="from terminated"):
                session.state = state

    @pytest.mark.parametrize("state", [SessionState.TERMINATED, "terminated"])
    def test_no_session_begins_terminated(self, state: Any, history_class: Any) -> None:
        """A session that has ended cannot be made; one that is loaded already can."""
        fields = {"agent_config": AGENT, "history": history_class()}
        for make in (lambda: ChatSession(**fields, state=state), lambda: ChatSession.model_validate(fields | {"state": state})):
            with pytest.raises(ValidationError, match="a session cannot begin terminated"):
                make()
        assert ChatSession(**fields).state is SessionState.INITIALIZING
        session = ChatSession(**fields, state="active")
        session.terminate()
        session.message_count = 2
        assert (session.state, session.message_count) == (SessionState.TERMINATED, 2)

    @pytest.mark.parametrize(
        ("field", "value"),
        [("message_count", -1), ("started_at", datetime(2999, 1, 1, tzinfo=UTC)), ("history", []), ("state", "over"), ("x", 1)],
    )
    def test_an_assignment_that_is_refused_changes_nothing(self, field: str, value: Any, history_class: Any) -> None:
        """The session is as it was, and can go on."""
        session = ChatSession(agent_config=AGENT, history=history_class())
        before = dict(session)
        with pytest.raises(ValueError, match=r"."):
            setattr(session, field, value)
        assert dict(session) == before
        session.activate()

    def test_importing_the_model_does_not_import_semantic_kernel(self) -> None:
        """Whoever only reads a configuration does not pay for the kernel."""
        code = "import sys; import holodeck.models.chat; print({'semantic_kernel', 'opentelemetry', 'openai'} & set(sys.modules))"
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "set()"


class TestChatConfig:
    def test_the_defaults_are_quiet(self, tmp_path: Path) -> None:
        """Not verbose, nothing sent, fifty messages."""
        path = tmp_path / "a.yaml"
        path.touch()
        config = ChatConfig(agent_config_path=path)
        assert (config.verbose, config.enable_observability, config.max_messages) == (False, False, 50)

    def test_the_agent_file_has_to_be_a_readable_file(self, tmp_path: Path) -> None:
        """A missing path and a directory are told apart."""
        with pytest.raises(ValidationError, match="Agent config not found"):
            ChatConfig(agent_config_path=tmp_path / "no.yaml")
        with pytest.raises(ValidationError, match="Path is not a file"):
            ChatConfig(agent_config_path=tmp_path)

    @pytest.mark.parametrize("number", [0, -1, True, 1.5, "many"])
    def test_max_messages_is_positive(self, number: Any, tmp_path: Path) -> None:
        """A session has room for at least one message."""
        path = tmp_path / "a.yaml"
        path.touch()
        with pytest.raises(ValidationError, match="max_messages"):
            ChatConfig(agent_config_path=path, max_messages=number)
