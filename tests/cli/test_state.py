"""Where state is kept."""

from __future__ import annotations

import pytest

from holodeck.cli.history import history_path
from holodeck.cli.state import state_directory
from holodeck.errors import SettingError
from holodeck.telemetry.spool.directories import spool_settings


@pytest.mark.parametrize("value", ["", "/somewhere/else", "relative/place", "~/in home"])
def test_history_and_queue_are_in_one_directory(value, monkeypatch, tmp_path):
    """What the doctor looks at is where both are kept, however the variable is written."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    environ = {"HOLODECK_STATE_DIR": value}
    assert state_directory(environ).is_absolute()
    assert spool_settings(environ).root == state_directory(environ) / "spool"
    assert history_path(environ) == state_directory(environ) / "history.jsonl"
    assert not value.startswith("~") or state_directory(environ) == tmp_path / "in home"


def test_a_home_that_is_not_known():
    """The variable is named."""
    with pytest.raises(SettingError, match="HOLODECK_STATE_DIR: ~nobody-of-this-name is no home directory"):
        state_directory({"HOLODECK_STATE_DIR": "~nobody-of-this-name/x"})
