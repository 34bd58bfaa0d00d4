"""What a draw is, what it costs, and who pays.

``events`` are the records that both the sampler and the accountant read; ``budget`` prices them; ``ledger`` charges them and
gives receipts; ``allowance`` holds a part of a budget and says what noise it buys; ``noise`` draws, against receipts alone.
``conversion`` is the only user of dp-accounting, ``amplification`` and
``perturbed_objective`` the arithmetic of secret samples and of tilted objectives, ``guard_round`` a round of
the sparse vector, ``uniforms`` the slow and certain half of the sampler, ``process`` what a fork must not share.
"""
