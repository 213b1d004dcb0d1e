package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// length is the number of nodes of the chain, and of bare calls.
const length = 10

// smallInput is the input of a chain over a small state, and the text of a bare call.
const smallInput = `{"x":0}`

// largeInput returns the input of a chain over a large state: documents of 4 KB, some bytes in all.
func largeInput(size int) string {
	const document = 4 << 10
	var b strings.Builder
	b.WriteString(`{"x":0,"documents":[`)
	for i := 0; b.Len()+document < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		head := fmt.Sprintf(`{"id":%d,"title":"Document %d","text":"`, i, i)
		b.WriteString(head)
		b.WriteString(strings.Repeat("The customer asks for a refund. ", (document-len(head)-3)/32))
		b.WriteString(`"}`)
	}
	b.WriteString(`]}`)
	return b.String()
}

// patience is after how long a chain counts as broken.
const patience = time.Minute

// kind is one measurement.
type kind struct {
	name string
	// once does it one time and returns the time that it took.
	once   func(context.Context) (time.Duration, error)
	beside []int       // kinds that it is compared with
	busy   []int       // processes whose processor time counts
	rounds [][]float64 // milliseconds, by round
	work   float64     // milliseconds of processor time, of all rounds
}

// measure takes all kinds in turn, run by run, so that other work of
// the machine hits them alike. The first round only warms up.
func measure(ctx context.Context, kinds []kind, rounds, runs int) error {
	for round := range rounds + 1 {
		took := make([][]float64, len(kinds))
		for range runs {
			for i := range kinds {
				before, err := processorTime(kinds[i].busy)
				if err != nil {
					return err
				}
				d, err := kinds[i].once(ctx)
				if err != nil {
					return fmt.Errorf("%s: %w", kinds[i].name, err)
				}
				took[i] = append(took[i], float64(d)/float64(time.Millisecond))
				after, err := processorTime(kinds[i].busy)
				if err != nil {
					return err
				}
				if round > 0 {
					kinds[i].work += after - before
				}
			}
		}
		for i := range kinds {
			if round > 0 {
				kinds[i].rounds = append(kinds[i].rounds, took[i])
			}
		}
	}
	return nil
}

// processorTime returns the milliseconds of processor time of some processes. A reading is exact to
// a tick of the clock, and the sum over many runs to much less.
func processorTime(pids []int) (float64, error) {
	const tick = 10 // milliseconds, on every Linux
	var sum float64
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), ") ") // behind the name of the program
		fields := strings.Fields(rest)
		if len(fields) < 13 {
			return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
		}
		for _, field := range fields[11:13] { // in the program, and in the kernel
			ticks, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return 0, err
			}
			sum += tick * ticks
		}
	}
	return sum, nil
}

// all lists every run.
func (k kind) all() []float64 { return slices.Concat(k.rounds...) }

// over compares with another kind: the ratio of the medians of every round.
func (k kind) over(base kind) []float64 {
	var out []float64
	for i := range k.rounds {
		out = append(out, quantile(k.rounds[i], 0.5)/quantile(base.rounds[i], 0.5))
	}
	return out
}

// quantile is the value below which the share q of the values lies.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1))]
}

// client calls the processes with nodes and graphd, in the same way: from this
// process, with grpc-go, over one connection each.
type client struct {
	conns  []*grpc.ClientConn
	graphd graphdv1.GraphServiceClient
}

func dial(server string) (*client, error) {
	c := &client{}
	conn, err := c.connect(server)
	if err != nil {
		return nil, err
	}
	c.graphd = graphdv1.NewGraphServiceClient(conn)
	return c, nil
}

// dialNodes connects to a process with nodes at a port of this machine.
func (c *client) dialNodes(port string) (*grpc.ClientConn, error) {
	return c.connect("127.0.0.1:" + port)
}

func (c *client) connect(address string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err == nil {
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

func (c *client) close() {
	for _, conn := range c.conns {
		_ = conn.Close() // the program ends
	}
}

// callsOf makes the bare calls of a process in turn: the first one with a large text, all others
// with a small one.
func callsOf(nodes *grpc.ClientConn, first string) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		text := first
		for range length {
			err := nodes.Invoke(ctx, "/bench.Node/Call", wrapperspb.String(text), &wrapperspb.StringValue{})
			text = smallInput
			if err != nil {
				return 0, err
			}
		}
		return time.Since(began), nil
	}
}

// chainOf runs a graph in a new thread and waits for its end.
func (c *client) chainOf(graph, input string) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		began := time.Now()
		run, err := c.graphd.StartRun(ctx, &graphdv1.StartRunRequest{
			Run: &graphdv1.RunSpec{
				CreateThread: true, Graph: graph,
				Start: &graphdv1.RunSpec_Input{Input: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: input}}},
			},
			Wait: durationpb.New(patience),
		})
		if err != nil {
			return 0, err
		}
		took := time.Since(began)
		if got := run.GetOutput().GetJson(); !strings.Contains(got, `"x":10`) {
			return 0, fmt.Errorf("the run is %s with %.80s: %s", run.GetState(), got, run.GetFailure().GetMessage())
		}
		return took, nil
	}
}
