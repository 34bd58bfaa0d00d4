"""AI assistants as analysts: a few tools over what a table has released, by the Model Context Protocol.

    quoting      names and labels as texts that no reader takes for instructions, links or markup
    arguments    the arguments of a tool: their schema, and the refusal of others
    desk         one table at the disposal of one assistant: what it may ask and spend, and what it was told
    tool         a tool and its result, as values
    results      answers as short records and sentences, with bars in words and numbers
    describing   the tools describe_dataset, summarise_columns, synthetic_rows
    asking       the tools ask and sql
    explaining   the tool explain_answer
    buying       the tools price and buy
    models       the tools fit_model and score_on_holdout: coefficients as data, never code
    holdout      a separate table with a budget of its own, on which models are scored
    toolbox      all tools, and the call of one of them
    resources    documents to read: universe, statement, certificate, history
    guide        what an assistant is told: instructions and the prompt
    protocol     the wrapper of the official SDK, over stdio; the service mounts it over HTTP

Every tool but ``buy`` and ``score_on_holdout`` answers from released values alone and can charge nothing. The tools
import no SDK: they are functions from a desk and arguments to a result.
"""
