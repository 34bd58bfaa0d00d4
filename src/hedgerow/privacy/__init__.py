"""Price, charge and draw everything that is released about private data.

- ``events``: frozen records of what is drawn. The sampler and the accountant read the same record.
- ``budget``: the total (ε, δ), the price of an event, and the sensitivities that the neighbours imply.
- ``filter``: may this be charged? ``log``: the entries of what was. ``replay``: from entries to sums, and the charges
  that a repeated opening meets. ``answer_log``: the answers that were given.
- ``receipt``: charges through the filter into the log, permits the draws, and bills questions.
- ``ledger``: these parts, composed under one lock.
- ``accounts``: several ledgers, one per block of rows.
- ``allowance``: a part of a budget, the noise that it buys, and warnings about a budget that buys too little.
- ``noise``: draws, against receipts only.
- ``conversion``: conversions between ε, δ and ρ. The only module that uses dp-accounting.
- ``amplification`` and ``perturbed_objective``: the arithmetic of secret samples and of randomly tilted objectives.
- ``planned``: the price of Gaussian noise that is declared before anything else is charged.
- ``guard_round``: one round of the sparse vector technique.
- ``uniforms``: the slow, exact half of the sampler.
- ``process``: objects that a forked process must not share.
"""
