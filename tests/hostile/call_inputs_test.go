package hostile_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// callInputs are the inputs that are calls.
func callInputs() []input {
	return []input{
		{"deep JSON", func(ctx context.Context, a *attack) {
			for _, n := range []int{100, 10_000, 500_000} {
				a.startRun(ctx, "", strings.Repeat("[", n)+strings.Repeat("]", n))
				a.startRun(ctx, "", `{"n":`+strings.Repeat(`{"n":`, n)+"1"+strings.Repeat("}", n)+"}")
			}
		}},
		{"huge number", func(ctx context.Context, a *attack) {
			a.startRun(ctx, "", `{"n":1`+strings.Repeat("0", 1_000_000)+`}`)
			a.startRun(ctx, "", `{"n":1e999999999}`)
			a.startRun(ctx, "", `{"n":1e-999999999999999999999}`)
		}},
		{"many keys", func(ctx context.Context, a *attack) {
			a.startRun(ctx, "", "{"+joinItems(80_000, func(i int) string { return fmt.Sprintf(`"k%d":%d`, i, i) })+"}")
			a.startRun(ctx, "", "{"+joinItems(80_000, func(int) string { return `"n":1` })+"}")
		}},
		{"broken JSON", func(ctx context.Context, a *attack) {
			for _, text := range []string{"", "{", "nul", "[1,]", `"\ud800"`, "{}{}", "\ufeff{}", "NaN", `{"n":01}`} {
				a.startRun(ctx, "", text)
			}
		}},
		{"large message", func(ctx context.Context, a *attack) { a.startRun(ctx, "", `"`+strings.Repeat("x", 32<<20)+`"`) }},
		{"largest payloads", func(ctx context.Context, a *attack) {
			a.runConcurrently(ctx, 60, func(i int) {
				a.startRun(ctx, fmt.Sprint("large-", i), `{"n":1,"x":"`+strings.Repeat("x", 1000<<10)+`"}`)
			})
		}},
		{"giant names", func(ctx context.Context, a *attack) {
			name := strings.Repeat("n", 1<<20)
			a.startRun(ctx, name, "{}")
			_, err := a.client.GetGraph(ctx, &graphdv1.GetGraphRequest{Graph: name, Version: name})
			a.recordAnswer("GetGraph", err)
			_, err = a.client.CreateThread(ctx, &graphdv1.CreateThreadRequest{ThreadId: "t\u202e\x00" + name, Thread: &graphdv1.Thread{}})
			a.recordAnswer("CreateThread", err)
		}},
		{"odd ids", func(ctx context.Context, a *attack) {
			for _, id := range []string{"../../etc/passwd", "a\nb", "{x}", "*", "\u200b", "a:b:c", strings.Repeat("🙂", 100), "'; drop table threads"} {
				a.startRun(ctx, id, "{}")
				_, err := a.client.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: id})
				a.recordAnswer("GetThread", err)
			}
		}},
		{"large metadata", func(ctx context.Context, a *attack) {
			labels := make(map[string]string)
			for i := range 5000 {
				labels[fmt.Sprint("k", i)] = strings.Repeat("v", 200)
			}
			_, err := a.client.CreateThread(ctx, &graphdv1.CreateThreadRequest{ThreadId: "labels", Thread: &graphdv1.Thread{Metadata: labels}})
			a.recordAnswer("CreateThread", err)
		}},
		{"headers", func(ctx context.Context, a *attack) {
			out := metadata.AppendToOutgoingContext(ctx, "x-request-id", strings.Repeat("r", 7000), "traceparent", strings.Repeat("0", 7000))
			_, err := a.client.GetThread(out, &graphdv1.GetThreadRequest{ThreadId: "t"})
			a.recordAnswer("GetThread", err)
		}},
		{"watch flood", func(ctx context.Context, a *attack) {
			a.startRun(ctx, "watched", `{"n":1}`)
			a.holdStreams(ctx, a.scaleCount(4000, 10_000), a.watchThread("watched"))
		}},
		{"watches of nothing", func(ctx context.Context, a *attack) {
			a.holdStreams(ctx, a.scaleCount(1500, 3000), a.watchThread("nothing"))
		}},
		{"inbox flood", func(ctx context.Context, a *attack) {
			a.holdStreams(ctx, 2000, func(ctx context.Context) (string, receiveFunc, error) {
				stream, err := a.client.WatchInterrupts(ctx, &graphdv1.WatchInterruptsRequest{})
				return "WatchInterrupts", func() error { _, err := stream.Recv(); return err }, err
			})
		}},
		{"wait flood", func(ctx context.Context, a *attack) {
			a.runConcurrently(ctx, a.scaleCount(1000, 9000), func(int) {
				_, err := a.client.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: "watched", Wait: durationpb.New(time.Second)})
				a.recordAnswer("WaitRun", err)
			})
		}},
		{"slow readers", slowReaders},
		{"slow readers of one connection", func(ctx context.Context, a *attack) {
			a.createLargeLog(ctx, "slow")
			c, err := a.server.newClient(ctx, smallWindows()...)
			if err != nil {
				return
			}
			a.runConcurrently(ctx, a.scaleCount(400, 1000), func(int) { a.openUnread(ctx, c, "slow") })
			a.honest.waitForRuns(ctx, 25*a.scale)
		}},
		{"slow readers of little", slowReadersOfLittle},
		{"half-sent requests", halfSent},
		{"half-open calls", halfOpenCalls},
		{"idle connections", idleConnections},
		{"gzip bombs", gzipBombs},
		{"messages of empty parts", emptyParts},
		{"answers nobody reads", func(ctx context.Context, a *attack) {
			a.createLargeLog(ctx, "slow")
			c, err := a.server.newClient(ctx, smallWindows()...)
			if err != nil {
				return
			}
			a.runConcurrently(ctx, 150*a.scale, func(int) {
				_, err := c.ListCheckpoints(ctx, &graphdv1.ListCheckpointsRequest{ThreadId: "slow", IncludeValues: true, PageSize: 500})
				a.recordAnswer("ListCheckpoints", err)
			})
		}},
		{"connections", func(ctx context.Context, a *attack) {
			a.runConcurrently(ctx, a.scaleCount(400, 1000), func(int) {
				if c, err := a.server.newClient(ctx); err == nil {
					_, err = c.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: "watched"})
					a.recordAnswer("GetThread", err)
				}
			})
			a.honest.waitForRuns(ctx, 25*a.scale)
		}},
		{"start flood", func(ctx context.Context, a *attack) {
			a.runConcurrently(ctx, 2000, func(i int) { a.startRun(ctx, fmt.Sprint("flood-", i), `{"n":1}`) })
		}},
		{"queue flood", func(ctx context.Context, a *attack) {
			a.runConcurrently(ctx, a.scaleCount(200, 1000), func(int) {
				_, err := a.client.StartRun(ctx, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
					Graph: "trivial", ThreadId: "queue", CreateThread: true, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload("{}")},
					Concurrency: graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_ENQUEUE,
				}})
				a.recordAnswer("StartRun", err)
			})
		}},
		{"idempotency flood", func(ctx context.Context, a *attack) {
			a.runConcurrently(ctx, 1500, func(i int) {
				_, err := a.client.StartRun(ctx, &graphdv1.StartRunRequest{RequestId: fmt.Sprint("id-", i%3), Run: &graphdv1.RunSpec{
					Graph: "trivial", ThreadId: fmt.Sprint("same-", i%7), CreateThread: true,
					Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(fmt.Sprintf(`{"n":%d}`, i%5))},
				}})
				a.recordAnswer("StartRun", err)
			})
		}},
		{"page tokens", func(ctx context.Context, a *attack) {
			for _, token := range []string{"x", strings.Repeat("A", 100_000), "////", "\u202e", "AAAA" + strings.Repeat("=", 50)} {
				_, err := a.client.ListThreads(ctx, &graphdv1.ListThreadsRequest{PageToken: token})
				a.recordAnswer("ListThreads", err)
				_, err = a.client.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{PageToken: token})
				a.recordAnswer("ListInterrupts", err)
				_, err = a.client.ListCheckpoints(ctx, &graphdv1.ListCheckpointsRequest{ThreadId: "watched", PageToken: token})
				a.recordAnswer("ListCheckpoints", err)
			}
		}},
		{"page sizes", func(ctx context.Context, a *attack) {
			for _, size := range []int32{-1, 0, 1, math.MaxInt32, math.MinInt32} {
				_, err := a.client.ListThreads(ctx, &graphdv1.ListThreadsRequest{PageSize: size})
				a.recordAnswer("ListThreads", err)
			}
		}},
		{"filter bombs", func(ctx context.Context, a *attack) {
			for _, filter := range []string{
				strings.Repeat("(", 100_000), strings.Repeat(`state = "idle" AND `, 5000) + `state = "idle"`, `metadata."` + strings.Repeat("a", 4000) + `" = "x"`,
				`state = "` + strings.Repeat(`\\`, 2000), "NOT", "thread_id = \"\x00\"", "state = '\u202e'",
			} {
				_, err := a.client.ListThreads(ctx, &graphdv1.ListThreadsRequest{Filter: filter})
				a.recordAnswer("ListThreads", err)
				_, err = a.client.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{Filter: filter})
				a.recordAnswer("ListInterrupts", err)
			}
		}},
		{"cursors", func(ctx context.Context, a *attack) {
			for _, cursor := range []*graphdv1.Cursor{
				nil, {}, {LogId: "x", Sequence: math.MaxUint64}, {LogId: strings.Repeat("l", 100_000)}, {Sequence: 1, Mark: math.MaxUint32},
			} {
				stream, err := a.client.Watch(ctx, &graphdv1.WatchRequest{ThreadId: "watched", Start: &graphdv1.WatchRequest_After{After: cursor}})
				if err == nil {
					_, err = stream.Recv()
				}
				a.recordAnswer("Watch", err)
			}
		}},
		{"odd watches", func(ctx context.Context, a *attack) {
			for _, req := range []*graphdv1.WatchRequest{
				{ThreadId: "watched", SnapshotFirst: true, Start: &graphdv1.WatchRequest_Now{Now: &emptypb.Empty{}}},
				{ThreadId: "watched", Filter: &graphdv1.EventFilter{Channels: make([]graphdv1.Channel, 100_000)}},
				{ThreadId: "watched", RunId: "none"},
				{},
			} {
				stream, err := a.client.Watch(ctx, req)
				if err == nil {
					_, err = stream.Recv()
				}
				a.recordAnswer("Watch", err)
			}
		}},
		{"huge batch of answers", func(ctx context.Context, a *attack) {
			responses := make([]*graphdv1.InterruptResponse, 20_000)
			for i := range responses {
				responses[i] = &graphdv1.InterruptResponse{
					InterruptId: fmt.Sprintf("%032d", i), Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(`{"decision":"yes"}`)},
				}
			}
			_, err := a.client.ResumeRun(ctx, &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{ThreadId: "watched", Responses: responses}})
			a.recordAnswer("ResumeRun", err)
		}},
		{"empty messages", func(ctx context.Context, a *attack) {
			_, err := a.client.StartRun(ctx, &graphdv1.StartRunRequest{})
			a.recordAnswer("StartRun", err)
			_, err = a.client.ResumeRun(ctx, &graphdv1.ResumeRunRequest{})
			a.recordAnswer("ResumeRun", err)
			_, err = a.client.UpdateState(ctx, &graphdv1.UpdateStateRequest{})
			a.recordAnswer("UpdateState", err)
			_, err = a.client.PutGraph(ctx, &graphdv1.PutGraphRequest{})
			a.recordAnswer("PutGraph", err)
		}},
		{"copies of copies", func(ctx context.Context, a *attack) {
			a.createLargeLog(ctx, "slow")
			from := "slow"
			for i := range 20 * a.scale {
				to := fmt.Sprint("copy-", i)
				_, err := a.client.CopyThread(ctx, &graphdv1.CopyThreadRequest{SourceThreadId: from, ThreadId: to})
				a.recordAnswer("CopyThread", err)
				if err == nil {
					from = to
				}
			}
		}},
		{"forks", func(ctx context.Context, a *attack) {
			a.runConcurrently(ctx, 300, func(i int) {
				_, err := a.client.ForkThread(ctx, &graphdv1.ForkThreadRequest{SourceThreadId: "watched", ThreadId: fmt.Sprint("fork-", i)})
				a.recordAnswer("ForkThread", err)
			})
		}},
		{"updates of state", func(ctx context.Context, a *attack) {
			a.runConcurrently(ctx, 100, func(int) {
				_, err := a.client.UpdateState(ctx, &graphdv1.UpdateStateRequest{
					ThreadId: "watched", Values: harness.NewPayload(`{"n":1}`), AsNode: "add",
				})
				a.recordAnswer("UpdateState", err)
			})
		}},
		{"runs that hold much and compute", func(ctx context.Context, a *attack) {
			a.requireGraph(ctx, "hoard-round", hoardGraph("{ expr: { update: { i: \"1\" } } }", fmt.Sprintf("state.i < %d", a.scaleCount(3, 10))))
			a.runHoards(ctx, "hoard-round", func(thread string) {
				_, err := a.client.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: thread})
				a.recordAnswer("WaitRun", err)
			})
		}},
		{"runs that hold much and wait", func(ctx context.Context, a *attack) {
			a.requireGraph(ctx, "hoard-wait", hoardGraph("{ remote: {} }", "false"))
			a.runHoards(ctx, "hoard-wait", func(thread string) {
				_, err := a.client.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: thread, Wait: durationpb.New(5 * time.Second)})
				a.recordAnswer("WaitRun", err)
			})
			a.honest.waitForRuns(ctx, 25*a.scale)
		}},
		{"calls on large states", largeStates},
		{"graph of many nodes", func(ctx context.Context, a *attack) {
			for i := range 5 * a.scale {
				_ = a.putGraph(ctx, fmt.Sprint("wide-", i), "channels: { x: append }\nnodes:\n"+
					joinLines(12_000, func(n int) string { return fmt.Sprintf("  n%d: { expr: { update: { x: ['%d'] } } }\n", n, n) })+
					"edges:\n"+joinLines(12_000, func(n int) string { return fmt.Sprintf("  - START -> n%d\n", n) }))
			}
		}},
		{"many graphs", func(ctx context.Context, a *attack) {
			a.runConcurrently(ctx, 1000, func(i int) {
				_ = a.putGraph(ctx, fmt.Sprint("small-", i), "channels: { x: {} }\nnodes: { n: { expr: { update: { x: \"1\" } } } }\nedges: [START -> n -> END]\n")
			})
		}},
		{"many versions", func(ctx context.Context, a *attack) {
			a.runConcurrently(ctx, 500, func(i int) {
				_ = a.putGraph(ctx, "versions", fmt.Sprintf("description: v%d\nchannels: { x: {} }\nnodes: { n: { expr: { update: { x: \"1\" } } } }\nedges: [START -> n -> END]\n", i))
			})
		}},
		{"subgraph tower", func(ctx context.Context, a *attack) {
			_ = a.putGraph(ctx, "tower-0", "channels: { x: {} }\nnodes: { n: { expr: { update: { x: \"1\" } } } }\nedges: [START -> n -> END]\n")
			for i := range 40 {
				_ = a.putGraph(ctx, fmt.Sprint("tower-", i+1), fmt.Sprintf(
					"channels: { x: any }\nnodes: { a: { graph: tower-%d }, b: { graph: tower-%d } }\nedges: [START -> a, START -> b]\n", i, i))
			}
			_, err := a.client.StartRun(ctx, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
				Graph: "tower-40", ThreadId: "tower", CreateThread: true, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload("{}")},
			}})
			a.recordAnswer("StartRun", err)
		}},
		{"worker that knows everything", func(ctx context.Context, a *attack) {
			stream, err := a.client.Connect(ctx)
			if err != nil {
				return
			}
			nodes := make([]*graphdv1.ServedNode, 0, 50_000)
			for i := range 50_000 {
				nodes = append(nodes, &graphdv1.ServedNode{Graph: fmt.Sprint("g", i), Node: "n"})
			}
			_ = stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{
				WorkerId: "greedy", Manifest: &graphdv1.WorkerManifest{Nodes: nodes},
			}}})
			_, err = stream.Recv()
			a.recordAnswer("Connect", err)
		}},
		{"worker that says nothing", func(ctx context.Context, a *attack) {
			a.runConcurrently(ctx, 500, func(int) { _, _ = a.client.Connect(ctx) })
			a.honest.waitForRuns(ctx, 25*a.scale)
		}},
	}
}

// startRun starts a run of the trivial graph.
func (a *attack) startRun(ctx context.Context, thread, input string) {
	_, err := a.client.StartRun(ctx, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		Graph: "trivial", ThreadId: thread, CreateThread: true, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(input)},
	}})
	a.recordAnswer("StartRun", err)
}

// putGraph gives the server a graph, which it may refuse.
func (a *attack) putGraph(ctx context.Context, name, rest string) error {
	_, err := a.client.PutGraph(ctx, &graphdv1.PutGraphRequest{
		DocumentName: name + ".yaml", Definition: &graphdv1.PutGraphRequest_Document{Document: "graph: " + name + "\n" + rest},
	})
	a.recordAnswer("PutGraph", err)
	return err
}

// requireGraph gives the server a graph without which an input would be none.
func (a *attack) requireGraph(ctx context.Context, name, rest string) bool {
	err := repeatWhileBusy(ctx, func() error { return a.putGraph(ctx, name, rest) })
	if err != nil {
		a.reportUnforeseen("graph " + name + " was refused: " + err.Error())
	}
	return err == nil
}

// receiveFunc waits for the next message of a stream.
type receiveFunc func() error

// watchThread follows a thread.
func (a *attack) watchThread(thread string) func(ctx context.Context) (string, receiveFunc, error) {
	return func(ctx context.Context) (string, receiveFunc, error) {
		stream, err := a.client.Watch(ctx, &graphdv1.WatchRequest{ThreadId: thread, Follow: true})
		return "Watch", func() error { _, err := stream.Recv(); return err }, err
	}
}

// holdStreams opens n streams at once, and closes them when each has been answered, if
// only by a sign of life.
func (a *attack) holdStreams(ctx context.Context, n int, open func(ctx context.Context) (string, receiveFunc, error)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.runConcurrently(ctx, n, func(int) {
		what, receive, err := open(ctx)
		if err == nil {
			err = receive()
		}
		a.recordAnswer(what, err)
	})
}

// openUnread begins to follow a thread, and reads nothing once the server has begun to
// send.
func (a *attack) openUnread(ctx context.Context, c harness.Client, thread string) {
	stream, err := c.Watch(ctx, &graphdv1.WatchRequest{
		ThreadId: thread, Follow: true, Start: &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}},
	})
	if err == nil {
		_, err = stream.Header()
	}
	a.recordAnswer("Watch", err)
}

// scaleCount is how often something is done: in the short form not much oftener than
// it takes to reach the limit of the server, which is what counts.
func (a *attack) scaleCount(short, long int) int {
	if a.scale == 1 {
		return short
	}
	return long
}

// runConcurrently does something n times, all at once.
func (*attack) runConcurrently(ctx context.Context, n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// hoardGraph is a graph whose runs come to hold 7 MB, and then go on with a node for
// as long as a condition says. They begin to grow when they have been admitted: a node with a
// timeout is not run by the call that starts the run.
func hoardGraph(node, again string) string {
	return `channels: { x: {}, y: {}, i: { reducer: add, default: 0 } }
nodes:
  grow: { timeout: 1h, expr: { update: { x: "cel.bind(a, state.x + state.x, cel.bind(b, a + a, cel.bind(c, b + b, cel.bind(d, c + c, d + d))))" } } }
  copy: { expr: { update: { y: "state.x" } } }
  last: ` + node + `
edges: [START -> grow -> copy -> last]
conditional_edges:
  - { from: last, cases: [ { when: "` + again + `", to: last }, { to: END } ] }
`
}

// countHoards is how many runs hold more together than a server has.
func (a *attack) countHoards() int { return a.scaleCount(24, 120) }

// runHoards runs such a graph many times, all at once, and deletes the threads when
// each of them was looked after.
func (a *attack) runHoards(ctx context.Context, name string, after func(thread string)) {
	seed := strings.Repeat("x", 115_000)
	a.runConcurrently(ctx, a.countHoards(), func(i int) {
		thread := fmt.Sprint(name, "-", i)
		for ctx.Err() == nil {
			_, err := a.client.StartRun(ctx, &graphdv1.StartRunRequest{RequestId: thread, Run: &graphdv1.RunSpec{
				Graph: name, ThreadId: thread, CreateThread: true, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(`{"x":"` + seed + `"}`)},
				Concurrency: graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_ENQUEUE,
			}})
			a.recordAnswer("StartRun", err)
			if err == nil {
				after(thread)
				return
			}
			a.honest.waitForRuns(ctx, 5) // the store is busy, or there is no memory
		}
	})
	for i := range a.countHoards() {
		a.deleteThread(context.WithoutCancel(ctx), fmt.Sprint(name, "-", i))
	}
}

const swellingGraph = `channels: { x: {}, i: { reducer: add, default: 0 } }
nodes: { n: { expr: { update: { i: "1", x: "lists.range(20000).map(a, 'x' + string(a)).join('-')" } } } }
edges: [START -> n]
conditional_edges:
  - { from: n, cases: [ { when: "state.i < 40", to: n }, { to: END } ] }
`

// createLargeLog makes a thread with a log of some megabytes.
func (a *attack) createLargeLog(ctx context.Context, thread string) {
	a.requireGraph(ctx, "swelling", swellingGraph)
	_, err := a.client.StartRun(ctx, &graphdv1.StartRunRequest{RequestId: "fill-" + thread, Run: &graphdv1.RunSpec{
		Graph: "swelling", ThreadId: thread, CreateThread: true, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload("{}")},
	}})
	a.recordAnswer("StartRun", err)
	_, err = a.client.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: thread, Wait: durationpb.New(30 * time.Second)})
	a.recordAnswer("WaitRun", err)
}

// slowReaders are streams with connections of their own, which read nothing.
func slowReaders(ctx context.Context, a *attack) {
	a.createLargeLog(ctx, "slow")
	a.runConcurrently(ctx, a.scaleCount(400, 1000), func(int) {
		if c, err := a.server.newClient(ctx, smallWindows()...); err == nil {
			a.openUnread(ctx, c, "slow")
		}
	})
	a.honest.waitForRuns(ctx, 25*a.scale)
}

// smallWindows keeps gRPC from reading more than 64 KB ahead.
func smallWindows() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithInitialWindowSize(64 << 10), grpc.WithInitialConnWindowSize(64 << 10)}
}

func joinLines(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i))
	}
	return b.String()
}

func joinItems(n int, item func(i int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return strings.Join(items, ",")
}
