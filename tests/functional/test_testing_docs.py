"""What docs/testing.md and docs/scripts.md say is what there is."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from holodeck.backends.script import Reply, load_script
from holodeck.testing.expect import Expect
from support.command import run

DOCS = Path(__file__).parents[2] / "docs"
TESTING, SCRIPTS = (DOCS / name for name in ("testing.md", "scripts.md"))


def in_first_column(page: Path) -> set[str]:
    """What stands in code in the first columns of the page's tables."""
    return {
        word
        for row in re.findall(r"^\| (`.*?) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
        for word in re.findall(r"`([^`]+)`", row)
    }


def test_every_key_and_option_is_documented() -> None:
    """Each expectation, each key of a reply and each option of the command is in a table."""
    documented = {re.split(r"[ :=]", word)[0] for word in in_first_column(TESTING)}
    assert set(Expect.model_fields) - documented == set()
    options = set(re.findall(r"--[a-z][a-z-]+|-[kjv]\b", run(["test", "--help"]).out)) - {"--help", "--no-observability"}
    assert options - documented - {"--jobs", "--verbose"} == set()
    assert {word for word in documented if word.startswith("-")} - options - {"--record", "--no-observability"} == set()
    assert set(Reply.model_fields) - in_first_column(SCRIPTS) == set()


def test_the_scripts_of_the_page_can_be_read(tmp_path: Path) -> None:
    """Each YAML sample that has replies is a script."""
    samples = [text for text in re.findall(r"```yaml\n(.*?)```", SCRIPTS.read_text(encoding="utf-8"), re.DOTALL) if "replies:" in text]
    for number, sample in enumerate(samples):
        path = tmp_path / f"{number}.yaml"
        path.write_text(sample, encoding="utf-8")
        assert load_script(path).replies
    assert len(samples) == 3


def test_the_first_green_test_is_green(tmp_path: Path) -> None:
    """The walk from nothing to a first test, with both runners; then red where the page says so."""
    assert run(["init", "weather"], cwd=tmp_path).code == 0
    project, text = tmp_path / "weather", TESTING.read_text(encoding="utf-8")
    for name, pattern in (("cases.yaml", r"```yaml\n(cases:.*?)```"), ("test_agent.py", r"```python\n(def test_a_temp.*?)```")):
        found = re.search(pattern, text, re.DOTALL)
        assert found is not None
        (project / name).write_text(found.group(1), encoding="utf-8")
    green = run(["test", "agent.yaml"], cwd=project)
    assert (green.code, green.out.splitlines()[-1]) == (0, "1 passed"), green.out
    tests = run(["-m", "pytest", "-q", "-p", "no:cacheprovider"], program=[sys.executable], cwd=project)
    assert (tests.code, "1 passed" in tests.out) == (0, True), tests.out
    (project / "cases.yaml").write_text((project / "cases.yaml").read_text().replace("68", "69"))
    assert run(["test", "agent.yaml"], cwd=project).code == 1


def test_links_lead_to_headings() -> None:
    """Each link of these pages to a heading names one."""
    pattern = r"\]\(([\w./]*\.md)?#([\w-]+)\)"
    links = [(page, *link) for page in (TESTING, SCRIPTS) for link in re.findall(pattern, page.read_text(encoding="utf-8"))]
    assert len(links) >= 3
    for page, target, anchor in links:
        other = (page.parent / target if target else page).read_text(encoding="utf-8")
        headings = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)", other, re.MULTILINE)}
        assert anchor in headings
