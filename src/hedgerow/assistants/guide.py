"""Texts for an assistant: the instructions of the server, and the prompt on honest analysis."""

from __future__ import annotations

from hedgerow.assistants.quoting import NOTE, quote_label

INSTRUCTIONS = (
    "You analyse a sensitive table that you never see. Every answer is a value with an interval that certainly "
    "contains the truth; all intervals hold together. Start with describe_dataset. Ask as many questions as you "
    "like: they are free unless a tool says otherwise, and the same question gets the same answer. Compare "
    "intervals, never bare values: a difference within the bars is not a finding. If a call is refused, the message "
    "says how to mend it. " + NOTE
)
PROMPT_NAME = "analyse_honestly"
PROMPT_TITLE = "How to analyse this table honestly"


def honest_analysis(question: str = "") -> str:
    """Return the prompt on how to analyse a table honestly, about a question if one is given."""
    about = f"The question to answer: {quote_label(question, 2000)}\n\n" if question else ""
    return about + (
        "Analyse this table with the tools, and report only what their intervals support.\n"
        "\n"
        "1. Call describe_dataset. Read the certificate: it says how exact answers are before you ask.\n"
        "2. Ask in batches. Prefer whole bins and declared values: a range that cuts a bin has a wider interval.\n"
        "3. Read the interval, not the value. 'certainly between a and b' is the finding; the value alone is not.\n"
        "4. Two groups differ only if explain_answer, a comparison or difference(…) says that it is settled. "
        "Overlapping intervals settle nothing: say so.\n"
        "5. Do not read noise. A small group whose bar is as wide as its value says nothing. Repeating a question "
        "gives the same answer, so repetition is no confirmation.\n"
        "6. Intervals are about this table. About the population, report only what explain_answer says.\n"
        "7. Many comparisons need no correction for the intervals themselves: all hold together. Choosing a model by "
        "its fit does: score the chosen ones with score_on_holdout if the tool is there.\n"
        "8. Association is not cause. No tool here tells why two things go together.\n"
        "9. Report each finding with its interval, and list what stayed unsettled.\n"
        f"10. {NOTE}"
    )
