"""What the results of a token's experts are multiplied with: softmax or sigmoid of their scores.

Sources: Shazeer et al. 2017 (softmax); "DeepSeek-V3 Technical Report" (2024; sigmoid).
"""

import numpy as np


def softmax_of_chosen(scores, chosen, weights):
    """exp(score - highest score) of the chosen; returns their sum, and that of all experts."""
    peak = scores[0]
    for expert in range(scores.shape[0]):
        peak = max(peak, scores[expert])
    total = 0.0
    for expert in range(scores.shape[0]):
        total += np.exp(np.float64(scores[expert] - peak))
    own = 0.0
    for slot in range(chosen.shape[0]):
        power = np.exp(np.float64(scores[chosen[slot]] - peak))
        own += power
        weights[slot] = np.float32(power)
    return own, total


def sigmoid_of_chosen(scores, chosen, weights):
    """1 / (1 + exp(-score)) of the chosen; returns their sum, held above the smallest normal half-precision number as
    other programs hold it, so that nothing is divided by zero."""
    own = 0.0
    for slot in range(chosen.shape[0]):
        share = 1.0 / (1.0 + np.exp(-np.float64(scores[chosen[slot]])))
        own += share
        weights[slot] = np.float32(share)
    return max(own, 6.103515625e-5)


# pythran export weigh_experts(float32[:,:] order(C), int32[:,:] order(C), float32[:,:] order(C), bool, bool, float64, int)
def weigh_experts(scores, chosen, weights, sigmoid, normalised, scale, threads):
    """scores: float32[n, n_experts]; chosen: int32[n, n_used]; weights: float32[n, n_used], overwritten.

    normalised: whether the weights of a token are divided by their sum, before they are multiplied with scale.
    """
    n = scores.shape[0]
    #omp parallel for schedule(static) num_threads(threads) if(n > 15)
    for part in range(threads):
        for token in range(part * n // threads, (part + 1) * n // threads):
            divisor = 1.0
            if sigmoid:
                own = sigmoid_of_chosen(scores[token], chosen[token], weights[token])
                if normalised:
                    divisor = own
            else:
                own, total = softmax_of_chosen(scores[token], chosen[token], weights[token])
                # total / total is 1, or no number where any score is none: damage has to show
                divisor = own * (total / total) if normalised else total
            for slot in range(chosen.shape[1]):
                weights[token, slot] = np.float32(np.float64(weights[token, slot]) * scale / divisor)
