package workers_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// silentEndpoint is an endpoint that never says what it serves.
type silentEndpoint struct {
	*nodeService

	asked chan struct{}
}

func (m *silentEndpoint) Describe(ctx context.Context, _ *graphdv1.DescribeRequest) (*graphdv1.WorkerManifest, error) {
	m.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// However many tasks wait for the same endpoint, each ends at its own time.
func TestAnEndpointThatNeverDescribesItselfHoldsNobodyBeyondTheirTime(t *testing.T) {
	s := startServer(t, config{})
	m := &silentEndpoint{nodeService: &nodeService{}, asked: make(chan struct{}, 9)}
	m.serveAs(t, m)
	s.putGraph(withEndpoint(newChainGraph("patient", "a"), m.address, nil))
	s.putGraph(withEndpoint(newChainGraph("hasty", "a"), m.address, &graphdv1.PolicySpec{Timeout: durationpb.New(100 * time.Millisecond)}))
	patient := s.startRun("patient", `{"x":0}`)
	receiveOrFail(t, m.asked, "the question")
	require.Equal(t, "NODE_TIMEOUT", s.runGraph("hasty", `{"x":0}`).GetFailure().GetReason())
	_, err := s.CancelRun(t.Context(), &graphdv1.CancelRunRequest{ThreadId: patient.GetThreadId(), RunId: patient.GetRunId()})
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_CANCELLED, s.waitStopped(patient).GetState())
	require.Empty(t, m.asked, "it is asked once")
}

// Peers that accept connections and are no gRPC servers are away, as far as the
// server can tell; the run waits, and ends when it is told to.
func TestAddressesThatAreNoEndpoint(t *testing.T) {
	for name, talk := range map[string]func(c net.Conn){
		"hangs up":       func(c net.Conn) { _ = c.Close() },
		"speaks HTTP/1":  func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 301 Moved\r\nLocation: http://x/\r\n\r\n") },
		"speaks rubbish": func(c net.Conn) { _, _ = io.WriteString(c, strings.Repeat("\xff\x00", 1<<16)) },
		"says nothing":   func(net.Conn) {},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			t.Cleanup(func() { _ = l.Close() })
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go talk(c)
				}
			}()
			s := startServer(t, config{})
			s.putGraph(withEndpoint(newChainGraph("g", "a"), l.Addr().String(), &graphdv1.PolicySpec{Timeout: durationpb.New(200 * time.Millisecond)}))
			f := s.runGraph("g", `{"x":0}`).GetFailure()
			require.Equal(t, "NODE_TIMEOUT", f.GetReason(), f.GetMessage())
		})
	}
}

// What comes after the result, or beyond what the server can take, changes nothing.
func TestAnEndpointThatSaysTooMuch(t *testing.T) {
	emit := func(durable bool, n int) *graphdv1.TaskUpdate {
		items := make([]*graphdv1.EmitItem, n)
		for i := range items {
			items[i] = &graphdv1.EmitItem{Channel: graphdv1.Channel_CHANNEL_CUSTOM, Value: harness.NewPayload(`1`), Durable: durable}
		}
		return &graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Emit{Emit: &graphdv1.Emit{Items: items}}}
	}
	for name, c := range map[string]struct {
		does   func(send func(*graphdv1.TaskUpdate)) error
		output string
		reason string
		kind   string
	}{
		"two results": {
			does: func(send func(*graphdv1.TaskUpdate)) error {
				send(newResultUpdate(completedResult(`{"x":1}`)))
				send(newResultUpdate(completedResult(`{"x":2}`)))
				return nil
			},
			output: `{"x":1,"log":[]}`,
		},
		"an error behind the result": {
			does: func(send func(*graphdv1.TaskUpdate)) error {
				send(newResultUpdate(completedResult(`{"x":1}`)))
				return status.Error(codes.Internal, "oh")
			},
			output: `{"x":1,"log":[]}`,
		},
		"a hundred thousand events": {
			does: func(send func(*graphdv1.TaskUpdate)) error {
				for range 100 {
					send(emit(false, 1000))
				}
				send(newResultUpdate(completedResult(`{"x":1}`)))
				return nil
			},
			output: `{"x":1,"log":[]}`,
		},
		"durable events without end": {
			does: func(send func(*graphdv1.TaskUpdate)) error {
				send(emit(true, 20_000))
				send(newResultUpdate(completedResult(`{"x":1}`)))
				return nil
			},
			reason: "NODE_FAILED", kind: "EmitFlood",
		},
		"nothing in an update": {
			does: func(send func(*graphdv1.TaskUpdate)) error {
				send(&graphdv1.TaskUpdate{})
				send(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Emit{}})
				send(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Result{}})
				return nil
			},
			reason: "INVALID_NODE_UPDATE",
		},
		"nesting": {
			does: func(send func(*graphdv1.TaskUpdate)) error {
				send(newResultUpdate(completedResult(`{"x":` + strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000) + `}`)))
				return nil
			},
			reason: "LIMIT_EXCEEDED",
		},
		"an error of a megabyte": {
			does: func(func(*graphdv1.TaskUpdate)) error {
				return status.Error(codes.Internal, strings.Repeat("\x00", 1<<20))
			},
			reason: "NODE_FAILED",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, config{})
			n := &nodeService{execute: func(_ context.Context, _ *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
				return c.does(send)
			}}
			n.listenAndServe(t)
			s.putGraph(withEndpoint(newChainGraph("g", "a"), n.address, nil))
			run := s.runGraph("g", `{"x":0}`)
			require.Equal(t, c.reason, run.GetFailure().GetReason(), run.GetFailure().GetMessage())
			if c.kind != "" {
				require.Equal(t, c.kind, run.GetFailure().GetType())
			}
			require.LessOrEqual(t, len(run.GetFailure().GetMessage()), 4096)
			if c.output != "" {
				require.JSONEq(t, c.output, run.GetOutput().GetJson())
			}
		})
	}
}

// A worker that never reads is sent away, with what it was given, though
// nothing can be sent to it.
func TestAWorkerThatNeverReadsIsSentAway(t *testing.T) {
	s := startServer(t, config{})
	stream, err := s.newClient().Connect(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: newHello("deaf", 1)}}))
	forged := make([][]byte, 1000)
	for i := range forged {
		forged[i] = fmt.Appendf(nil, "%04d%s", i, strings.Repeat("x", 1000)) // the answer names each once
	}
	beat := &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Beat{Beat: &graphdv1.Beat{Running: forged}}}
	go func() { // until it is sent away, or what it sends is not read either
		for range 50 {
			if stream.Send(beat) != nil {
				return
			}
		}
	}()
	require.Eventually(t, func() bool {
		connected, err := s.hub.Workers(t.Context())
		return err == nil && len(connected) == 0
	}, time.Minute, 10*time.Millisecond)
}
