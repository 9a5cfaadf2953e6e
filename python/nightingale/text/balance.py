"""Grouping a row of sizes so that the groups are few and alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

# What one more group costs beside the squares of the sizes: more than merging any two that together
# fill 60 % of a group, less than what cutting in a bad place costs a full one.
_GROUP = 0.4


def balanced(
    sizes: Sequence[float],
    costs: Sequence[float],
    fits: Callable[[float, float], bool],
) -> list[int]:
    """Where the groups end: the indices after their last members.

    costs[i] is added for a group that ends after member i. fits(total, largest member) says whether
    members may form a group; once it is False it must stay so as the group grows.
    """
    best = [0.0]
    starts = [0]
    for end in range(1, len(sizes) + 1):
        total = largest = 0.0
        lowest, chosen = float("inf"), end - 1
        for start in range(end - 1, -1, -1):
            size = sizes[start]
            total += size
            largest = max(largest, size)
            if start < end - 1 and not fits(total, largest):
                break
            cost = best[start] + total * total
            if cost < lowest:
                lowest, chosen = cost, start
        best.append(lowest + _GROUP + costs[end - 1])
        starts.append(chosen)
    ends = []
    end = len(sizes)
    while end:
        ends.append(end)
        end = starts[end]
    return ends[::-1]
