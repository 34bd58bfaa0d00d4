"""Write the worked transcript of docs/assistants.md: `python tools/assistant_transcript.py`.

A scripted client asks the bundled table through the protocol. The noise comes from a seed, so that the page can be checked.
"""

from __future__ import annotations

import asyncio
import json
import textwrap
import warnings
from pathlib import Path
from typing import Any

from mcp import Client

import hedgerow as hr
from hedgerow import demo
from hedgerow.assistants.desk import AssistantDesk
from hedgerow.assistants.protocol import OneDesk, build_server
from hedgerow.errors import NotPrivateWarning

PAGE = Path(__file__).resolve().parent.parent / "docs" / "assistants.md"
BEGIN, END = "<!-- transcript: tools/assistant_transcript.py -->\n", "<!-- end of transcript -->\n"
FREE, FULL = (
    "share(count(visits={'[0, 1)'}), where=count(coinsurance=0))",
    "share(count(visits={'[0, 1)'}), where=count(coinsurance=95))",
)
FAIR = "share(count(health='poor'), where=count(coinsurance=0))"
POOR = "share(count(health='poor'), where=count(coinsurance=95))"
STEPS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("It looks at the table.", "describe_dataset", {"columns": ["visits", "coinsurance", "health"]}),
    (
        "It asks whether people who pay most of their bills see no doctor more often, and whether their health is poorer.",
        "ask",
        {"questions": [FREE, FULL, FAIR, POOR], "compare": [[0, 1], [2, 3]]},
    ),
    (
        "The first difference is settled, so it may be reported with its interval. The second is not, so it asks why.",
        "explain_answer",
        {"question": FAIR, "other": POOR},
    ),
    ("It tries a question that makes no sense, and is told how to mend it.", "ask", {"questions": ["mean('helth')"]}),
    ("It asks in SQL.", "sql", {"statement": "SELECT health, count(*) FROM data GROUP BY health"}),
)


async def transcript() -> str:
    """Return the steps of the script, and the replies to the client."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        session = hr.open(demo.path(), universe=demo.universe(), budget=hr.Budget(1.0, 1e-6), seed=1)
    parts = []
    async with Client(build_server(OneDesk(AssistantDesk(session, "rand_hie"))), mode="legacy") as client:
        for words, name, arguments in STEPS:
            result = await client.call_tool(name, arguments)
            lines = [
                f"→ {name} {json.dumps(arguments, ensure_ascii=False)}",
                *getattr(result.content[0], "text", "").splitlines(),
            ]
            shown = [part for line in lines for part in textwrap.wrap(line, 114, subsequent_indent="      ")]
            parts.append(f"{words}\n\n```text\n" + "\n".join(shown) + "\n```\n")
    return "\n".join(parts)


def with_transcript(page: str, found: str) -> str:
    """Return the page with the new transcript."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n{found}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_transcript(PAGE.read_text(), asyncio.run(transcript())))
