"""The experts of each token: those with the highest scores."""

import numpy as np


def comes_after(score, expert, last_score, last):
    """Whether an expert ranks below the one chosen last: lower score, or the same score and a higher number."""
    return last < 0 or score < last_score or (score == last_score and expert > last)


def choose(scores, chosen):
    """Each round takes the best of those that rank below the one before."""
    last = -1
    last_score = np.float32(0)
    for slot in range(chosen.shape[0]):
        best = -1
        best_score = np.float32(0)
        for expert in range(scores.shape[0]):
            score = scores[expert]
            if (best < 0 or score > best_score) and comes_after(score, expert, last_score, last):
                best = expert
                best_score = score
        if best < 0 or best_score != best_score:
            return False
        chosen[slot] = np.int32(best)
        last = best
        last_score = best_score
    return True


# pythran export choose_experts(float32[:,:] order(C), int32[:,:] order(C), int)
def choose_experts(scores, chosen, threads):
    """scores: float32[n, n_experts]; chosen: int32[n, n_used], written best first, of equal scores the lower number first.

    A token with a score that is no number gets the first experts: its results are no numbers anyhow.
    """
    n = scores.shape[0]
    #omp parallel for schedule(static) num_threads(threads) if(n > 15)
    for part in range(threads):
        for token in range(part * n // threads, (part + 1) * n // threads):
            if not choose(scores[token], chosen[token]):
                for slot in range(chosen.shape[1]):
                    chosen[token, slot] = np.int32(slot)
