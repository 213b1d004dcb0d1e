// Command remote measures what it costs to run nodes in another process: a
// chain of ten trivial nodes in Python, TypeScript and Go through graphd, beside ten bare
// gRPC calls of the same process, and LangGraph's own time for the same chain.
// README.md says how each is measured.
//
// It fails when something is broken, never because something is slow.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // the program begins here
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench/remote:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be done
	}
}

type options struct {
	graphd, python, langgraph, scripts, typescript string
	rounds, runs, stateBytes                       int
	serve                                          string
}

func run(ctx context.Context, w io.Writer, args []string) error {
	var o options
	flags := flag.NewFlagSet("remote", flag.ContinueOnError)
	flags.StringVar(&o.graphd, "graphd", "bin/graphd", "graphd binary")
	flags.StringVar(&o.python, "python", "python3", "interpreter that has the graphd SDK")
	flags.StringVar(&o.langgraph, "langgraph-python", "", "interpreter that has langgraph (default: that of -python)")
	flags.StringVar(&o.scripts, "scripts", "bench/remote", "folder with the scripts")
	flags.StringVar(&o.typescript, "typescript", "sdk/typescript/.build/index.js", "the built SDK for TypeScript")
	flags.IntVar(&o.rounds, "rounds", 15, "rounds; each measures everything in turn")
	flags.IntVar(&o.runs, "runs", 20, "runs of each kind in a round")
	flags.IntVar(&o.stateBytes, "state-bytes", 1_000_000, "bytes of the large state")
	flags.StringVar(&o.serve, "serve-nodes", "", "serve nodes in Go to the graphd at this address, and nothing else; this program starts itself so")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.serve != "" {
		return serveNodes(ctx, o.serve, os.Stdin, w)
	}
	if o.rounds < 1 || o.runs < 1 {
		return errors.New("-rounds and -runs must be at least 1")
	}
	if o.langgraph == "" {
		o.langgraph = o.python
	}
	return o.bench(ctx, w)
}

func (o options) bench(ctx context.Context, w io.Writer) error {
	server, err := startServer(ctx, o.graphd)
	if err != nil {
		return err
	}
	defer server.stop()
	own, err := os.Executable()
	if err != nil {
		return err
	}
	c, err := dial(server.address)
	if err != nil {
		return err
	}
	defer c.close()
	var kinds []kind
	large := largeInput(o.stateBytes)
	for _, l := range []language{
		{name: "Python", chain: "chain-python", large: "large-python", command: []string{o.python, filepath.Join(o.scripts, "nodes.py"), server.address}},
		{name: "Go", chain: goChain, large: goLarge, byKey: goByKey, command: []string{own, "-serve-nodes=" + server.address}},
		{name: "TypeScript", chain: "chain-typescript", large: "large-typescript", command: []string{"node", filepath.Join(o.scripts, "nodes.mjs"), server.address, o.typescript}},
	} {
		nodes, err := startScript(ctx, l.command[0], l.command[1:]...)
		if err != nil {
			return err
		}
		defer nodes.stop() //nolint:gocritic // all of them serve until the end
		bare, err := c.dialNodes(nodes.first)
		if err != nil {
			return err
		}
		busy := []int{server.command.Process.Pid, nodes.command.Process.Pid}
		kinds = append(kinds,
			kind{name: "10 bare calls, " + l.name, once: callsOf(bare, smallInput), busy: busy},
			kind{name: "graphd, chain in " + l.name, once: c.chainOf(l.chain, smallInput), beside: []int{len(kinds)}, busy: busy},
			kind{name: "10 bare calls, large, " + l.name, once: callsOf(bare, large), busy: busy},
			kind{name: "graphd, large, " + l.name, once: c.chainOf(l.large, large), beside: []int{len(kinds) + 2, len(kinds) + 1}, busy: busy})
		if l.byKey != "" {
			kinds = append(kinds, kind{name: "graphd, large by key, " + l.name, once: c.chainOf(l.byKey, large), beside: []int{len(kinds) - 2, len(kinds) - 3}, busy: busy})
		}
	}
	peer, err := startScript(ctx, o.langgraph, filepath.Join(o.scripts, "langgraph_chain.py"))
	switch {
	case errors.Is(err, errAbsent):
		fmt.Fprintf(w, "LangGraph is absent: %v\n", err)
	case err != nil:
		return err
	default:
		defer peer.stop()
		kinds = append(kinds, kind{name: "LangGraph " + peer.first, once: peer.once})
		kinds[1].beside = append(kinds[1].beside, len(kinds)-1)
	}
	if err := measure(ctx, kinds, o.rounds, o.runs); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%d rounds of %d runs each, memory store, times in ms\n\n%s", o.rounds, o.runs, report(kinds))
	return err
}

// language is one in which nodes are measured: a process with a chain of them, and bare calls.
type language struct {
	name, chain, large string
	byKey              string // a chain over the large state whose nodes read little of it; "" = none
	command            []string
}

// report shows every kind, and how the chains through graphd compare.
func report(kinds []kind) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-32s %8s %8s %8s %8s %10s\n", "", "median", "25 %", "75 %", "min", "processor")
	for _, k := range kinds {
		all := k.all()
		fmt.Fprintf(&b, "%-32s %8.2f %8.2f %8.2f %8.2f %10.2f\n", k.name, quantile(all, 0.5), quantile(all, 0.25),
			quantile(all, 0.75), quantile(all, 0), k.work/float64(len(all)))
	}
	b.WriteString("\n")
	for _, k := range kinds {
		for _, base := range k.beside {
			ratios := k.over(kinds[base])
			fmt.Fprintf(&b, "%s / %-32s median of rounds %.2f, from %.2f to %.2f; of the fastest runs %.2f\n", k.name,
				kinds[base].name, quantile(ratios, 0.5), quantile(ratios, 0), quantile(ratios, 1),
				quantile(k.all(), 0)/quantile(kinds[base].all(), 0))
		}
	}
	return b.String()
}
