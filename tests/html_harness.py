"""What tests of pages share: their elements, the data in them, and what Chromium makes of them.

CHROMIUM names a browser other than the one in PATH.
"""

import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")


class Dom(HTMLParser):
    """Elements of a page: [tag, attributes, text within], in their order."""

    EMPTY = {"meta", "link", "br", "col", "img", "input"}

    def __init__(self, text):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        element = [tag, dict(attrs), ""]
        self.elements.append(element)
        if tag not in self.EMPTY:
            self.open.append(element)

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for element in self.open:
            element[2] += data

    def find(self, tag, **attributes):
        wanted = {k.rstrip("_").replace("_", "-"): v for k, v in attributes.items()}
        return [e for e in self.elements if e[0] == tag and all(e[1].get(k) == v for k, v in wanted.items())]

    def rows(self, label):
        """The texts of a table's cells, row by row, by its aria-label."""
        at = next(i for i, e in enumerate(self.elements) if e[0] == "table" and e[1].get("aria-label") == label)
        rows = []
        for tag, _, text in self.elements[at + 1 :]:
            if tag == "table":
                break
            if tag == "tr":
                rows.append([])
            elif tag in ("td", "th") and rows:
                rows[-1].append(text.strip())
        return rows


def page_data(page):
    """Every JSON element of a page, by its id."""
    found = Dom(page.read_text(encoding="utf-8")).find("script", type="application/json")
    return {attributes["id"]: json.loads(text) for _, attributes, text in found}


# Under virtual time a browser paints when it likes, or never: frames come by the clock.
FRAMES = "window.requestAnimationFrame = (paint) => setTimeout(() => paint(performance.now()), 16);"

# tell(what): to the test, as JSON.
TELL = """
function tell(what) {
  const pre = document.createElement("pre");
  pre.id = "probe";
  pre.textContent = JSON.stringify(what);
  document.body.append(pre);
}
"""


def render(test, page, probe, folder, *flags, budget_ms=3000):
    """The page's elements once it is drawn and `probe`, a script, has used it, and what that told; no error, neither in the
    page nor on the console. folder: of the test."""
    text = page.read_text(encoding="utf-8")
    text = text.replace("<head>", f"<head><script>{FRAMES}</script>", 1)
    page.write_text(text.replace("</body>", f"<script>{TELL}{probe}</script></body>"), encoding="utf-8")
    done = subprocess.run([CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                           f"--user-data-dir={folder}/browser", "--host-resolver-rules=MAP * ~NOTFOUND",
                           "--enable-logging=stderr", "--window-size=1000,900", f"--virtual-time-budget={budget_ms}", *flags,
                           "--dump-dom", page.as_uri()], capture_output=True, text=True, check=False, timeout=120,
                          env={**os.environ, "HOME": str(folder)})  # fmt: skip
    test.assertEqual(0, done.returncode, done.stderr)
    test.assertEqual([], re.findall(r".*CONSOLE.*", done.stderr))
    dom = Dom(done.stdout)
    test.assertEqual([], [e[2] for e in dom.elements if "error" in e[1].get("class", "").split()])
    test.assertEqual("drawn", dom.find("html")[0][1].get("data-state"))
    probes = dom.find("pre", id="probe")
    return dom, json.loads(probes[0][2]) if probes else None
