// Package peer starts the runtimes of graphs that graphd is measured beside,
// and has them measure themselves. README.md says how each is driven.
package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/bench/process"
	"github.com/graphd-dev/graphd/bench/workload"
)

// Peer is a running runtime of graphs.
type Peer struct {
	// Who names it in results. Version is that of its package.
	Who, Version string
	kind         kind
	child        *process.Child
}

// The names of peers.
const (
	LangGraph   = "LangGraph"
	LangGraphJS = "LangGraph.js"
	LangGraphGo = "langgraphgo"
	Eino        = "eino"
	// Embedded is graphd itself, in the process of its user.
	Embedded = "graphd embedded"
)

// kind has the folder and the command of a peer, and its possible measurements.
type kind struct {
	who, folder string
	command     []string
	workloads   []string
	stores      []string
	// most is how many clients make sense.
	most int
}

func kinds() []kind {
	langgraph, lone := []string{"W1", "W2", "W3", "W5"}, []string{"W1", "W2", "W5"}
	all, some := []string{"memory", "sqlite", "redis"}, []string{"memory", "redis"}
	return []kind{
		{LangGraph, "langgraph-python", []string{"venv/bin/python", "-W", "ignore", "peer.py"}, langgraph, all, 64},
		{LangGraphJS, "langgraph-js", []string{"node", "--no-warnings", "peer.mjs"}, langgraph, all, 1000},
		{LangGraphGo, "libraries", []string{"bin/langgraphgo"}, lone, some, 1000},
		{Eino, "libraries", []string{"bin/eino"}, lone, some, 1000},
		{Embedded, "embedded", []string{"bin/embedded"}, lone, all, 1000},
	}
}

// Start starts all peers that are installed in a folder, see install.sh there,
// and says why others are absent.
func Start(ctx context.Context, folder string) (peers []*Peer, absent []string) {
	for _, k := range kinds() {
		p, err := startOne(ctx, filepath.Join(folder, k.folder), k)
		if err != nil {
			absent = append(absent, fmt.Sprintf("%s is absent: %v", k.who, err))
			continue
		}
		peers = append(peers, p)
	}
	return peers, absent
}

func startOne(ctx context.Context, folder string, k kind) (*Peer, error) {
	if why, err := os.ReadFile(filepath.Join(folder, "absent")); err == nil { //nolint:gosec // the folder of the peers
		return nil, errors.New(strings.TrimSpace(string(why)))
	}
	if _, err := os.Stat(folder); err != nil {
		return nil, errors.New("not installed, see make bench-peers")
	}
	child, err := process.StartChild(ctx, folder, k.command[0], k.command[1:]...)
	if err != nil {
		return nil, err
	}
	var hello struct{ Name, Version string }
	if err := child.Hear(&hello); err != nil {
		child.Stop()
		return nil, err
	}
	return &Peer{Who: k.who, Version: hello.Version, kind: k, child: child}, nil
}

// Stop ends it.
func (p *Peer) Stop() { p.child.Stop() }

// Can tells whether a peer has a workload on a kind of store for so many
// clients.
func (p *Peer) Can(name, store string, clients int) bool {
	return slices.Contains(p.kind.workloads, name) && slices.Contains(p.kind.stores, store) && clients <= p.kind.most
}

// Request is a measurement that a peer takes.
type Request struct {
	Workload string `json:"workload"`
	// Store is memory, sqlite or redis, URL a file or redis://HOST:PORT/DB.
	Store   string `json:"store"`
	URL     string `json:"url"`
	Clients int    `json:"clients"`
	// Each client goes on for Seconds, or Repeat times if that is not 0.
	Seconds float64 `json:"seconds"`
	Repeat  int     `json:"repeat,omitempty"`
}

// patience is after how long a peer counts as broken.
const patience = 3 * time.Minute

// Measure has the peer do it. Its rate is in operations.
func (p *Peer) Measure(ctx context.Context, r Request) (workload.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stop := context.AfterFunc(ctx, p.child.Kill)
	defer stop()
	var answer struct {
		workload.Sample
		Error string `json:"error"`
	}
	if err := p.child.Say(r); err != nil {
		return workload.Sample{}, err
	}
	if err := p.child.Hear(&answer); err != nil {
		return workload.Sample{}, errors.Join(ctx.Err(), err)
	}
	if answer.Error != "" {
		return workload.Sample{}, fmt.Errorf("%s: %s", p.Who, answer.Error)
	}
	return answer.Sample, nil
}
