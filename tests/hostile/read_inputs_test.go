package hostile_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// heavyGraph replaces a state of 7 MB in each of some supersteps.
const heavyGraph = `channels: { base: {}, x: {}, y: {}, i: { reducer: add, default: 0 } }
nodes: { n: { expr: { update: { i: "1", x: "state.base + state.base + state.base + string(state.i)", y: "string(state.i) + state.base + state.base + state.base" } } } }
edges: [START -> n]
conditional_edges:
  - { from: n, cases: [ { when: "state.i % 6 != 0", to: n }, { to: END } ] }
`

// askingGraph asks an interrupt of as much as a value may have in each of some tasks.
const askingGraph = `channels: { base: {} }
nodes:
  fan: { expr: { goto: "lists.range(5).map(i, send('q', {'n': i, 'base': state.base}))" }, destinations: [q] }
  q: { ask: { message: "'?'", value: "state" } }
edges: [START -> fan, q -> END]
`

// readInputs are inputs that show much of what the attacker has stored before.
func readInputs() []input {
	return []input{
		{"waits for large outputs", func(ctx context.Context, a *attack) {
			a.createHeavyThread(ctx)
			a.runConcurrently(ctx, 100*a.scale, func(i int) {
				var err error
				if i%4 == 0 {
					_, err = a.client.ListRuns(ctx, &graphdv1.ListRunsRequest{ThreadId: "heavy", PageSize: 500})
				} else {
					_, err = a.client.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: "heavy", Wait: durationpb.New(30 * time.Second)})
				}
				a.recordAnswer("WaitRun", err)
			})
		}},
		{"large states at once", func(ctx context.Context, a *attack) {
			a.createHeavyThread(ctx)
			a.runConcurrently(ctx, 100*a.scale, func(i int) {
				var err error
				if i%2 == 0 {
					_, err = a.client.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: "heavy", Subgraphs: true})
				} else {
					_, err = a.client.ListThreads(ctx, &graphdv1.ListThreadsRequest{PageSize: 500, View: graphdv1.ThreadView_THREAD_VIEW_FULL})
				}
				a.recordAnswer("GetState", err)
			})
		}},
		{"snapshots for slow readers", func(ctx context.Context, a *attack) {
			a.createHeavyThread(ctx)
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			a.runConcurrently(ctx, 100*a.scale, func(int) {
				c, err := a.server.newClient(ctx, smallWindows()...)
				if err != nil {
					return
				}
				_, err = c.Watch(ctx, &graphdv1.WatchRequest{ThreadId: "heavy", Follow: true, SnapshotFirst: true})
				a.recordAnswer("Watch", err) // it waits for no header: that of the last comes when others were closed
			})
			a.honest.waitForRuns(ctx, 100*a.scale)
		}},
		{"watches of large states", func(ctx context.Context, a *attack) {
			a.createHeavyThread(ctx)
			events := a.scaleCount(4, enoughEvents)
			a.holdStreams(ctx, a.scaleCount(50, 300), func(ctx context.Context) (string, receiveFunc, error) {
				stream, err := a.client.Watch(ctx, &graphdv1.WatchRequest{
					ThreadId: "heavy", Start: &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}},
					Filter: &graphdv1.EventFilter{Channels: []graphdv1.Channel{graphdv1.Channel_CHANNEL_VALUES, graphdv1.Channel_CHANNEL_DEBUG}},
				})
				return "Watch", func() (err error) {
					for heard := 0; err == nil && heard < events; heard++ {
						_, err = stream.Recv()
					}
					return nil
				}, err
			})
		}},
		{"large updates for slow readers", func(ctx context.Context, a *attack) {
			a.createHeavyThread(ctx)
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			events := a.scaleCount(4, enoughEvents)
			a.runConcurrently(ctx, a.scaleCount(24, 120), func(i int) {
				c, err := a.server.newClient(ctx, smallWindows()...)
				if err != nil {
					return
				}
				stream, err := c.Watch(ctx, &graphdv1.WatchRequest{
					ThreadId: "heavy", Follow: true, Start: &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}},
				})
				for heard := 0; i%8 == 0 && err == nil && heard < events; heard++ {
					_, err = stream.Recv()
				}
				a.recordAnswer("Watch", err)
			})
			a.honest.waitForRuns(ctx, 25*a.scale)
		}},
		{"large questions", func(ctx context.Context, a *attack) {
			a.requireGraph(ctx, "curious", askingGraph)
			const threads = 4
			for n := range threads {
				a.runLarge(ctx, "curious", fmt.Sprint("curious-", n), 700<<10)
			}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			a.runConcurrently(ctx, a.scaleCount(100, 600), func(i int) {
				var err error
				switch i % 4 {
				case 0:
					_, err = a.client.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{PageSize: 500})
				case 1:
					_, err = a.client.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: fmt.Sprint("curious-", i%threads)})
				default:
					c, dialed := a.server.newClient(ctx, smallWindows()...)
					if dialed != nil {
						return
					}
					_, err = c.WatchInterrupts(ctx, &graphdv1.WatchInterruptsRequest{})
				}
				a.recordAnswer("reading questions", err)
			})
			a.honest.waitForRuns(ctx, 50*a.scale)
			for n := range threads {
				a.deleteThread(context.WithoutCancel(ctx), fmt.Sprint("curious-", n))
			}
		}},
	}
}

// createHeavyThread makes a thread with states of 7 MB, once.
func (a *attack) createHeavyThread(ctx context.Context) {
	a.requireGraph(ctx, "heavy", heavyGraph)
	a.runLarge(ctx, "heavy", "heavy", 1000<<10)
}

// runLarge runs a graph over an input of so many bytes, until it stops.
func (a *attack) runLarge(ctx context.Context, name, thread string, bytes int) {
	start := &graphdv1.StartRunRequest{RequestId: "large-" + thread, Run: &graphdv1.RunSpec{
		Graph: name, ThreadId: thread, CreateThread: true,
		Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(`{"base":"` + strings.Repeat("x", bytes) + `"}`)},
	}}
	a.recordAnswer("StartRun", repeatWhileBusy(ctx, func() error { _, err := a.client.StartRun(ctx, start); return err }))
	var run *graphdv1.Run
	a.recordAnswer("WaitRun", repeatWhileBusy(ctx, func() (err error) {
		run, err = a.client.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: thread})
		return err
	}))
	if state := run.GetState(); state != graphdv1.RunState_RUN_STATE_SUCCEEDED && state != graphdv1.RunState_RUN_STATE_INTERRUPTED {
		a.reportUnforeseen("nothing large: the run is " + state.String() + ": " + run.GetFailure().GetMessage())
	}
}
