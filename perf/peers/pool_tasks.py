#!/usr/bin/env python3
"""perf_workers' peer: WORKERS processes of multiprocessing.Pool, tasks that sleep MS milliseconds, one second of them for each
worker. Prints the seconds that map() took; the pool is there before. Tasks are handed out one by one, as in Fiber's test."""

import sys
import time
from multiprocessing import Pool


def main():
    workers, ms = int(sys.argv[1]), int(sys.argv[2])
    with Pool(workers) as pool:
        pool.map(time.sleep, [0.001] * workers)
        start_s = time.perf_counter()
        pool.map(time.sleep, [ms / 1000] * (workers * 1000 // ms), chunksize=1)
        print(time.perf_counter() - start_s)


if __name__ == "__main__":
    main()
