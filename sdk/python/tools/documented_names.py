"""The names of LangGraph that its documentation imports, and how often.

    python tools/documented_names.py DOCS LANGGRAPH   # writes tests/langgraph_documented.json

DOCS and LANGGRAPH are git directories of github.com/langchain-ai/docs and github.com/langchain-ai/langgraph. It reads
their HEAD: the Python code of pages and notebooks. A use is a name in an import statement. Names of other distributions
than langgraph, langgraph-prebuilt and langgraph-checkpoint don't count.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECORD = Path(__file__).resolve().parent.parent / "tests" / "langgraph_documented.json"

PAGES = {
    "langchain-ai/docs": re.compile(r"src/(oss|snippets)/(?!integrations/).*\.(mdx?|ipynb)"),
    "langchain-ai/langgraph": re.compile(r".*\.(mdx?|ipynb)"),
}
"""By repository: the files that are documentation of LangGraph."""

OTHER_DISTRIBUTIONS = (
    "cache.sqlite",
    "checkpoint.aws",
    "checkpoint.conformance",
    "checkpoint.couchbase",
    "checkpoint.mongodb",
    "checkpoint.postgres",
    "checkpoint.redis",
    "checkpoint.sqlite",
    "store.mongodb",
    "store.postgres",
    "store.redis",
    "store.sqlite",
)
"""Modules below langgraph that pip installs by another name."""

_FENCED = re.compile(r"^[ \t]*```\s*(?:python|py)\b[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"#[^\n]*")
_IMPORT = re.compile(r"\bfrom\s+langgraph\.([\w.]+)\s+import\s+(\([^)]*\)|(?:\\\n|[^\n])+)")
_NAME = re.compile(r"\w+")


def record_uses(repositories: dict[str, Path]) -> dict[str, Any]:
    """The uses of each name by module, and the commits that were read."""
    found: Counter[tuple[str, str]] = Counter()
    for repository, folder in repositories.items():
        for page in _list_pages(folder, PAGES[repository]):
            for code in read_code(page, _run_git(folder, "show", f"HEAD:{page}")):
                found.update(find_imports(code))
    uses: dict[str, dict[str, int]] = {}
    for (module, name), count in sorted(found.items()):
        uses.setdefault(module, {})[name] = count
    commits = {name: _run_git(folder, "rev-parse", "HEAD").strip() for name, folder in repositories.items()}
    return {"commits": commits, "uses": uses}


def _list_pages(folder: Path, wanted: re.Pattern[str]) -> list[str]:
    listed = _run_git(folder, "ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0")
    return [name for name in listed if wanted.fullmatch(name)]


def _run_git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "--git-dir", folder, *arguments], stdout=subprocess.PIPE, check=True)
    return done.stdout.decode(errors="replace")


def read_code(page: str, text: str) -> list[str]:
    """The Python code of a page, or of a notebook."""
    if page.endswith(".ipynb"):
        cells = json.loads(text)["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return _FENCED.findall(text)


def find_imports(code: str) -> Iterator[tuple[str, str]]:
    """Modules below langgraph, and the names that are imported from them.

    Code of pages has gaps and magic commands, so it is not parsed.
    """
    for module, listed in _IMPORT.findall(_COMMENT.sub("", code)):
        if not any(module == other or module.startswith(f"{other}.") for other in OTHER_DISTRIBUTIONS):
            for item in listed.strip("()").split(","):
                if name := _NAME.search(item):
                    yield module, name.group()


if __name__ == "__main__":
    if len(sys.argv) != 1 + len(PAGES):
        raise SystemExit(__doc__)
    record = record_uses(dict(zip(PAGES, map(Path, sys.argv[1:]), strict=True)))
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
