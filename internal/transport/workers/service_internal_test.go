package workers

import (
	"context"
	"io"
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

// firstMessage is a stream on which one message comes.
type firstMessage struct {
	workerStream

	message chan *graphdv1.ConnectRequest // nil after its end
}

func (f firstMessage) Recv() (*graphdv1.ConnectRequest, error) {
	if m := <-f.message; m != nil {
		return m, nil
	}
	return nil, io.EOF
}

// TestHelloThatIsLateOrMissing tells a worker that is slow, which connects again, from one
// whose program is wrong.
func TestHelloThatIsLateOrMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		stream := firstMessage{message: make(chan *graphdv1.ConnectRequest)}
		_, err := New(Options{}).receiveHello(t.Context(), stream)
		close(stream.message)
		require.ErrorIs(t, err, &runtime.Error{Reason: reason.DeadlineExceeded})
		require.ErrorContains(t, err, "10s")
		require.Equal(t, helloTimeout, time.Since(begin))
	})
	stream := firstMessage{message: make(chan *graphdv1.ConnectRequest, 1)}
	stream.message <- &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Beat{Beat: &graphdv1.Beat{}}}
	_, err := New(Options{}).receiveHello(t.Context(), stream)
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonInvalidField})
}
