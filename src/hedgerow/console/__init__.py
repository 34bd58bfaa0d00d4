"""The console: the service in the browser, at its root.

Pages are made by the server; scripts and styles are in ``static``.

    site          the checks around a page, and the table of pages
    visits        who is signed in, by a cookie
    page_request  a request for a page
    gateway       endpoints of the service, called within the process
    exploration   what the address of a page asks: filters, groups and a measure
    wording       numbers and sentences
    bars          geometry of bars and whiskers
    completion    names that the SQL editor completes
    analysts      pages that ask
    owners        pages that run a dataset
    tour          five steps on the bundled table

No page computes a number: every number is a field of an endpoint's reply, which ``/v1`` would give to the same token.
"""

from hedgerow.console.site import pages

__all__ = ["pages"]
