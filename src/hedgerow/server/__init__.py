"""The service: many analysts ask one session over HTTP. ``hedgerow serve`` starts it.

    settings     the configuration file: datasets, address, limits
    registry     tokens, the audit trail and stored outcomes, in one SQLite file
    people       tokens: who may do what, and until when
    dataset      one open session, which answers waiting questions together in a thread of its own
    questions    the questions of a request, as data: JSON forms or text, never code
    problems     one error shape, with the library's sentences
    limits       rates and sizes, per token
    metrics      counts and latencies for Prometheus
    api          the endpoints
    openapi      the description of the endpoints
    app          the application: the checks that every request passes, then the endpoints
    run          the process: address, TLS, first token

Only released values cross the wire. Questions arrive as data and are checked against the universe; no code is received.
"""
