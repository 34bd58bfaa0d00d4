"""The service: many analysts ask one session over HTTP. ``hedgerow serve`` starts it.

    settings      the configuration file: datasets, address, workers, limits
    registry      tokens, the audit trail and stored outcomes, in one SQLite file
    commits       changes of the registry that are written together, outside the event loop
    people        tokens: who may do what, and until when
    approvals     purchases that wait for an owner's yes, and their state
    answer_queue  requests that wait for free answers, in which batches they are answered, and what is repeated
    dataset       one open session: its thread does what may charge, worker processes answer what is free
    heads         the head of a ledger, noted elsewhere, so that an older copy is noticed
    pool          the worker processes: who does which work, and for how long
    worker        a worker process, which has the public state and no table
    messages      values that go from one process of the service to another
    shared_answers which answer to a question is everybody's, where fronts compute answers too
    journal       free answers, written down before they are given
    questions     the questions of a request, as data: JSON forms or text, never code
    problems      one error shape, with the library's sentences
    limits        rates and sizes, per token
    connections   the time in which a request must arrive
    metrics       counts and latencies for Prometheus
    endpoint      a request that has passed the checks, a reply, and a row of the interface
    asking        the endpoints that ask
    buying        purchases, and the endpoints of approvals
    reading       the endpoints that read facts, ledger and trail
    tokens        the endpoints of tokens
    api           the table of all endpoints
    openapi       the description of the endpoints
    app           the application: the checks that every request passes, then the endpoints
    replies       bodies, responses, refusals and faults of an endpoint
    arrivals      the first checks of a request: host, origin, size
    fronts        the engine's side of its fronts: the public state, what may be given, who may ask
    front         a process that hands requests on to the engine
    front_engine  the engine as a front asks it
    front_answers the free answers of a front, from the public state
    run           the process: address, TLS, first token

Only released values cross the wire. Questions arrive as data and are checked against the universe; no code is received.
"""
