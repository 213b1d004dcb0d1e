package workers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/reason"
	"github.com/graphd-dev/graphd/internal/worker"
)

// slowRegistry stores a graph in the time in which something else happens.
type slowRegistry struct {
	meanwhile func()
}

func (r slowRegistry) PutGraph(context.Context, string, runtime.PutGraphRequest) (runtime.GraphEntry, error) {
	r.meanwhile()
	return runtime.GraphEntry{Graph: &graph.Graph{Name: "g", Version: "1"}}, nil
}

// The connection of a worker breaks while the graphs of its hello are stored, and the
// worker comes back. Its old hello does not know what the new stream was given.
func TestAHelloOfABrokenStreamBeginsNoSession(t *testing.T) {
	for name, isNoticed := range map[string]bool{"the server knows of the break": true, "the server does not know of it": false} {
		t.Run(name, func(t *testing.T) {
			hub := worker.New(worker.Options{})
			ctx, breakStream := context.WithCancel(t.Context())
			defer breakStream()
			var newer *worker.Session
			s := New(Options{Hub: hub, Graphs: slowRegistry{meanwhile: func() {
				if isNoticed {
					breakStream()
				}
				var err error
				newer, _, err = hub.OpenSession(worker.Hello{Worker: "w1", Number: hub.NumberHello()})
				require.NoError(t, err)
			}}})
			_, err := s.openSession(ctx, nil, hub.NumberHello(), &graphdv1.Hello{
				WorkerId: "w1", Manifest: &graphdv1.WorkerManifest{Graphs: []*graphdv1.GraphSpec{{Name: "g"}}}, Credit: &graphdv1.Credit{TotalSlots: 1},
			})
			if isNoticed {
				require.ErrorIs(t, err, context.Canceled)
			} else {
				require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonWorkerReplaced})
			}
			select {
			case <-newer.Ended():
				require.Fail(t, "the newer session has ended")
			default:
			}
		})
	}
}

// TestHelloThatIsLateOrMissing tells a worker that is slow, which connects again, from one
// whose program is wrong.
func TestHelloThatIsLateOrMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, err := New(Options{}).receiveHello(t.Context(), make(chan receivedMessage))
		require.ErrorIs(t, err, &runtime.Error{Reason: reason.DeadlineExceeded})
		require.ErrorContains(t, err, "10s")
		require.Equal(t, helloTimeout, time.Since(begin))
	})
	incoming := make(chan receivedMessage, 1)
	incoming <- receivedMessage{message: &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Beat{Beat: &graphdv1.Beat{}}}}
	_, err := New(Options{}).receiveHello(t.Context(), incoming)
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonInvalidField})
}
