"""The client: ask a service as one asks a session. It needs neither the table nor the engines.

connection   requests over one kept connection, with repetitions that cannot be billed twice
remote       a dataset of a service, which answers like a session
database     a PEP-249 connection
dialect      SQLAlchemy's dialect
"""

from hedgerow.client.connection import ApprovalNeeded, ServiceError
from hedgerow.client.remote import AsyncRemoteSession, RemoteSession, connect, connect_async

__all__ = ["ApprovalNeeded", "AsyncRemoteSession", "RemoteSession", "ServiceError", "connect", "connect_async"]
