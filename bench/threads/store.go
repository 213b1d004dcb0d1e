package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"text/tabwriter"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/graphd-dev/graphd/bench/process"
	"github.com/graphd-dev/graphd/bench/stand"
	"github.com/graphd-dev/graphd/bench/workload"
)

// The graphs of the threads: six of seven threads have the first.
const (
	askedGraph = "chain"
	otherGraph = "list"
)

// server is a graphd with threads.
type server struct {
	options options
	api     string // URL of the API of LangGraph Server
	threads graphdv1.ThreadServiceClient
	asked   int // how many threads have askedGraph
}

// measureStore makes the threads on a store, and measures the calls.
func measureStore(ctx context.Context, o options, store string, w *tabwriter.Writer) error {
	s, err := stand.Start(ctx, stand.Program{Graphd: o.graphd, Graphs: o.graphs}, store, nil)
	if err != nil {
		return err
	}
	defer s.Stop()
	address, err := process.FreeAddress(ctx)
	if err != nil {
		return err
	}
	g, err := s.StartTwin(ctx, []string{"--langgraph", address})
	if err != nil {
		return err
	}
	defer g.Stop()
	conn, err := grpc.NewClient(g.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	target := &server{options: o, api: "http://" + address, threads: graphdv1.NewThreadServiceClient(conn)}
	if err := target.makeThreads(ctx); err != nil {
		return err
	}
	for _, c := range target.listCalls() {
		sample, err := workload.Repeat(ctx, 1, o.repeat, 1, func(ctx context.Context, _ int, times *workload.Times) error {
			return times.Time(func() error { return c.do(ctx) })
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%.2f\n", store, c.name, 1000*sample.P50, 1000*sample.P99)
	}
	return nil
}

// makeThreads makes the threads, with UUIDs that are in no order.
func (s *server) makeThreads(ctx context.Context) error {
	var next atomic.Int64
	count := s.options.count
	_, err := workload.Repeat(ctx, s.options.lanes, 1, 1, func(ctx context.Context, _ int, _ *workload.Times) error {
		for n := int(next.Add(1)) - 1; n < count; n = int(next.Add(1)) - 1 {
			graph := askedGraph
			if n%7 == 0 {
				graph = otherGraph
			}
			id := fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(n)*2_654_435_761, n)
			thread := &graphdv1.Thread{Graph: graph, Metadata: map[string]string{"team": "leads"}}
			if _, err := s.threads.CreateThread(ctx, &graphdv1.CreateThreadRequest{ThreadId: id, Thread: thread}); err != nil {
				return err
			}
		}
		return nil
	})
	s.asked = count - (count+6)/7
	return err
}

// timedCall is a call that is timed.
type timedCall struct {
	name string
	do   func(ctx context.Context) error
}

// listCalls lists the calls. Each fails if its answer is wrong.
func (s *server) listCalls() []timedCall {
	const page = 10
	half := s.options.count / 2
	idle := fmt.Sprintf(`"status":"idle","metadata":{"graph_id":%q}`, askedGraph)
	team := `"metadata":{"team":"leads"}`
	search := func(conditions string, offset int) func(context.Context) error {
		if conditions != "" {
			conditions += ","
		}
		body := fmt.Sprintf(`{%s"limit":%d,"offset":%d}`, conditions, page, offset)
		return func(ctx context.Context) error {
			var found []json.RawMessage
			if err := s.post(ctx, "/threads/search", body, &found); err != nil {
				return err
			}
			return requireCount(len(found), page)
		}
	}
	count := func(conditions string, want int) func(context.Context) error {
		return func(ctx context.Context) error {
			var found int
			if err := s.post(ctx, "/threads/count", "{"+conditions+"}", &found); err != nil {
				return err
			}
			return requireCount(found, want)
		}
	}
	return []timedCall{
		{"search, status and graph, offset 0", search(idle, 0)},
		{fmt.Sprintf("search, status and graph, offset %d", half), search(idle, half)},
		{fmt.Sprintf("search, status, offset %d", half), search(`"status":"idle"`, half)},
		{fmt.Sprintf("search, metadata, offset %d", half), search(team, half)},
		{fmt.Sprintf("search, status and metadata, offset %d", half), search(`"status":"idle",`+team, half)},
		{fmt.Sprintf("search, offset %d", half), search("", half)},
		{"count", count("", s.options.count)},
		{"count, status and graph", count(idle, s.asked)},
		{"count, metadata", count(team, s.options.count)},
		{fmt.Sprintf("ListThreads, state and graph, offset %d", half), func(ctx context.Context) error {
			found, err := s.threads.ListThreads(ctx, &graphdv1.ListThreadsRequest{
				Filter: fmt.Sprintf("state = IDLE AND graph = %q", askedGraph), PageSize: page, Offset: int32(half),
			})
			return errors.Join(err, requireCount(len(found.GetThreads()), page))
		}},
		{"ListThreads, state and graph, count_total", func(ctx context.Context) error {
			found, err := s.threads.ListThreads(ctx, &graphdv1.ListThreadsRequest{
				Filter: fmt.Sprintf("state = IDLE AND graph = %q", askedGraph), PageSize: 1, CountTotal: true,
			})
			return errors.Join(err, requireCount(int(found.GetTotalSize()), s.asked))
		}},
	}
}

func requireCount(found, want int) error {
	if found != want {
		return fmt.Errorf("the answer is %d, want %d", found, want)
	}
	return nil
}

// callTimeout is how long a call may take before the measurement fails.
const callTimeout = time.Minute

// post makes a call of the API of LangGraph Server.
func (s *server) post(ctx context.Context, path, body string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.api+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %.300s", path, response.Status, text)
	}
	return json.Unmarshal(text, answer)
}
