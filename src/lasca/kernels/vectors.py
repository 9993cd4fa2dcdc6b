"""Flat vector work of L-BFGS, in place, without BLAS: its threads spin where cores are shared."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated, import-untyped"
from __future__ import annotations

from typing import Any

from lasca.kernels.compiled import inner, kernel

__all__ = [
    "add_penalty", "dot", "lbfgs_direction", "owlqn_align", "owlqn_project", "owlqn_pseudo_gradient", "remember",
    "step_to", "sum_parts",
]  # fmt: skip

_FAST = {"contract", "reassoc", "nsz", "arcp"}


@kernel(fastmath=_FAST)
def dot(a, b):
    """Return a · b. BLAS would start threads of its own, and sum in an order that depends on their number."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@inner(fastmath=_FAST)
def _subtract_and_dot(q, scale, y, s):
    """q −= scale · y, then return q · s, in one pass."""
    total = 0.0
    for i in range(q.shape[0]):
        v = q[i] - scale * y[i]
        q[i] = v
        total += v * s[i]
    return total


@kernel(fastmath=_FAST)
def lbfgs_direction(gradient, steps, changes, inner, newest, n_pairs, share, out):
    """Write −H·gradient by the two-loop recursion; `inner[k]` is steps[k] · changes[k].

    `newest` is the place of the latest pair in the ring of pairs, `share` room for a number of each pair. Returns
    gradient · direction.
    """
    size = steps.shape[0]
    for i in range(gradient.shape[0]):
        out[i] = gradient[i]
    if n_pairs == 0:
        for i in range(out.shape[0]):
            out[i] = -out[i]
        return -dot(gradient, gradient)
    product = dot(out, steps[newest])
    for k in range(n_pairs):
        place = (newest - k + size) % size
        share[k] = product / inner[place]
        follower = (newest - k - 1 + size) % size if k + 1 < n_pairs else place
        product = _subtract_and_dot(out, share[k], changes[place], steps[follower])
    scale = inner[newest] / dot(changes[newest], changes[newest])
    oldest = (newest - n_pairs + 1 + size) % size
    for i in range(out.shape[0]):
        out[i] *= scale
    product = dot(out, changes[oldest])
    for k in range(n_pairs - 1, -1, -1):
        place = (newest - k + size) % size
        follower = (newest - k + 1 + size) % size if k > 0 else place
        product = _subtract_and_dot(out, product / inner[place] - share[k], steps[place], changes[follower])
    for i in range(out.shape[0]):
        out[i] = -out[i]
    return dot(gradient, out)


@kernel(fastmath=_FAST)
def add_penalty(x, l2, gradient):
    """gradient += 2 · l2 · x; return l2 · ‖x‖²."""
    total = 0.0
    for i in range(x.shape[0]):
        gradient[i] += 2.0 * l2 * x[i]
        total += x[i] * x[i]
    return l2 * total


def sum_parts(parts: Any, out: Any) -> None:
    """out[i] = sum of parts[:, i], in order, for as many i as the parts have."""
    sums = out[: parts.shape[1]]
    sums[:] = parts[0]
    for part in parts[1:]:
        sums += part


@kernel(fastmath=_FAST)
def step_to(x, length, direction, out):
    """out = x + length · direction."""
    for i in range(x.shape[0]):
        out[i] = x[i] + length * direction[i]


@kernel(fastmath=_FAST)
def remember(x, new_x, gradient, new_gradient, step, change):
    """Fill the pair (step, change of gradient), move x and gradient to the new ones; return step · change."""
    total = 0.0
    for i in range(x.shape[0]):
        step[i] = new_x[i] - x[i]
        change[i] = new_gradient[i] - gradient[i]
        total += step[i] * change[i]
        x[i] = new_x[i]
        gradient[i] = new_gradient[i]
    return total


@kernel
def owlqn_pseudo_gradient(x, gradient, l1, out):
    """Write the steepest-descent subgradient of f + l1 · ‖x‖₁; return ‖x‖₁."""
    norm = 0.0
    for i in range(x.shape[0]):
        norm += abs(x[i])
        if x[i] < 0:
            out[i] = gradient[i] - l1
        elif x[i] > 0 or gradient[i] + l1 < 0:
            out[i] = gradient[i] + l1
        elif gradient[i] - l1 > 0:
            out[i] = gradient[i] - l1
        else:
            out[i] = 0.0
    return norm


@kernel
def owlqn_align(direction, pseudo):
    """Set to 0 what does not go down along the pseudo-gradient; return their product."""
    total = 0.0
    for i in range(direction.shape[0]):
        if direction[i] * pseudo[i] >= 0:
            direction[i] = 0.0
        total += direction[i] * pseudo[i]
    return total


@kernel
def owlqn_project(x, pseudo, length, direction, out):
    """Take a step and stay in the orthant of x (of −pseudo where x is 0); return (norm₁, pseudo · (out − x))."""
    norm, change = 0.0, 0.0
    for i in range(x.shape[0]):
        orthant = x[i] if x[i] != 0 else -pseudo[i]
        v = x[i] + length * direction[i]
        out[i] = v if v * orthant > 0 else 0.0
        norm += abs(out[i])
        change += pseudo[i] * (out[i] - x[i])
    return norm, change
