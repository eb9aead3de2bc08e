"""Settings of the line editor."""

from __future__ import annotations

import io

import pytest
from prompt_toolkit.enums import EditingMode

from holodeck.cli.editor import SteadyOutput, editing_mode


@pytest.mark.parametrize(
    ("variable", "inputrc", "mode"),
    [
        ("", "", EditingMode.EMACS),
        ("vi", "", EditingMode.VI),
        ("", "set bell-style none\n set editing-mode vi\n", EditingMode.VI),
        ("emacs", "set editing-mode vi\n", EditingMode.EMACS),
        ("", "# set editing-mode vi\n", EditingMode.EMACS),
        ("", "set editing-mode vi\nset editing-mode emacs\n", EditingMode.EMACS),
    ],
)
def test_vi_or_emacs(tmp_path, variable, inputrc, mode):
    """The variable wins over readline's file, Emacs keys are the default."""
    (tmp_path / "inputrc").write_text(inputrc)
    assert editing_mode({"HOLODECK_EDITING_MODE": variable, "INPUTRC": str(tmp_path / "inputrc")}) is mode


def test_no_inputrc(tmp_path):
    """A file that is not there says nothing."""
    assert editing_mode({"INPUTRC": str(tmp_path / "no")}) is EditingMode.EMACS


def test_a_redraw_leaves_the_terminal_in_one_piece_and_pastes_marked():
    """While it is held nothing is written, and bracketed paste is not switched off."""
    file = io.StringIO()
    output = SteadyOutput.of(file)
    output.held = True
    output.write_raw("text")
    output.disable_bracketed_paste()
    output.flush()
    assert file.getvalue() == ""
    output.held = False
    output.flush()
    assert file.getvalue() == "text"
    assert not output.responds_to_cpr
