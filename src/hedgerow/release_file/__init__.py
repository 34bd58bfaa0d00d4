"""Release files: everything public of a session in one file, and the release that answers from it.

``publish`` collects what may be published, ``document`` writes it as JSON and checks what it reads, ``container`` is
the zip with its hashes, ``signing`` its signature, and ``release`` answers questions from a file. docs/release-file.md
describes the format.
"""
