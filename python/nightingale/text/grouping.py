"""Grouping a sequence of sizes so that the groups are few and of similar size."""

from __future__ import annotations

from collections.abc import Callable, Sequence

# The cost of one more group, added to the squares of the group sizes: more than merging any two
# that together fill 60 % of a group, less than splitting a full one at a bad position.
_GROUP_COST = 0.4


def balanced_groups(
    sizes: Sequence[float],
    costs: Sequence[float],
    fits: Callable[[float, float], bool],
) -> list[int]:
    """The end index of each group, of the grouping with the lowest cost.

    costs[i] is added for a group that ends after member i. fits(total, largest member) says whether
    members may form a group; once it is False it must stay False as the group grows.
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
        best.append(lowest + _GROUP_COST + costs[end - 1])
        starts.append(chosen)
    ends = []
    end = len(sizes)
    while end:
        ends.append(end)
        end = starts[end]
    return ends[::-1]
