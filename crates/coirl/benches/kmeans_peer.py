"""scikit-learn's KMeans behind one JSON-lines protocol, for the k-means benchmark.

    python kmeans_peer.py ROWS.npy    answer requests on stdin until it ends

Requests, one JSON object per line, each answered by one line:
    {"clusters": k, "seed": s, "algorithm": "lloyd" or "elkan"}
        -> {"seconds", "cpu", "seeding", "iterations", "inertia"}

One first guess, otherwise scikit-learn's defaults (greedy k-means++, 300 iterations, tolerance 1e-4). `seconds` is the wall
clock of the whole fit and `cpu` its processor time, `seeding` the wall clock of the first guess within it.
"""

import json
import sys
import time

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus


def fit(rows: np.ndarray, clusters: int, seed: int, algorithm: str) -> dict:
    seeding = 0.0

    def first_guess(rows: np.ndarray, clusters: int, random_state: np.random.RandomState) -> np.ndarray:
        nonlocal seeding
        start = time.perf_counter()
        centres, _ = kmeans_plusplus(rows, clusters, random_state=random_state)
        seeding = time.perf_counter() - start
        return centres

    wall, cpu = time.perf_counter(), time.process_time()
    found = KMeans(clusters, init=first_guess, n_init=1, algorithm=algorithm, random_state=seed).fit(rows)
    return {
        "seconds": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "seeding": seeding,
        "iterations": int(found.n_iter_),
        "inertia": float(found.inertia_),
    }


def main() -> None:
    rows = np.load(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(fit(rows, **json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
