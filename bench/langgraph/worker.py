"""A worker of graphd with the graphs. It prints a line when it serves, and ends with its input."""

import sys

from graphs import Declaration

import graphd

if __name__ == "__main__":
    declared = Declaration(graphd, graphd.interrupt)
    served = [
        declared.question().compile(server=sys.argv[1], name="question"),
        declared.chain().compile(server=sys.argv[1], name="chain"),
    ]
    print("ready", flush=True)
    sys.stdin.read()
