"""axe-core in a page of a real browser: what it calls a violation of WCAG 2.1 A or AA."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
RUN = """async rules => (await axe.run({runOnly: rules})).violations.flatMap(found =>
    found.nodes.map(node => `${found.id}: ${found.help}: ${node.html.slice(0, 160)}`))"""


def violations(page: "Page", axe: str, path: Path | None = None) -> list[Any]:
    """Of a page that is opened, or as it stands."""
    if path:
        page.goto(path.as_uri())
    page.evaluate(axe)
    return list(page.evaluate(RUN, RULES))
