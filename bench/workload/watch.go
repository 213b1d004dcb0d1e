package workload

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/graphd-dev/graphd/bench/wire"
)

// Watchers has so many clients watch one thread, then begins a run of so many
// steps. Its rate is that of events that all of them saw together.
func Watchers(ctx context.Context, t Target, names *Names, watchers, steps int) (Sample, error) {
	ctx, fail := context.WithCancelCause(ctx) // the first error stops all
	defer fail(nil)
	thread := names.Next()
	create := encode(&graphdv1.CreateThreadRequest{ThreadId: thread, Thread: &graphdv1.Thread{Graph: "loop"}})
	if _, err := t.Call(ctx, 0, t.Method(Create), create); err != nil {
		return Sample{}, err
	}
	var (
		ready, all sync.WaitGroup
		began      atomic.Int64
	)
	ready.Add(watchers)
	for lane := range watchers {
		all.Go(func() {
			w := watcher{target: t, lane: lane, thread: thread, steps: steps, ready: sync.OnceFunc(ready.Done)}
			defer w.ready()
			if err := w.watch(ctx); err != nil {
				fail(err)
			}
		})
	}
	ready.Wait()
	began.Store(time.Now().UnixNano())
	request := encode(&graphdv1.StartRunRequest{Run: run("loop", thread, Loop(steps, 0))})
	if _, err := t.Call(ctx, 0, t.Method(Go), request); err != nil {
		fail(err)
	}
	all.Wait()
	took := time.Duration(time.Now().UnixNano() - began.Load()).Seconds()
	return Sample{Rate: float64(watchers*steps) / took}, context.Cause(ctx)
}

// watcher follows a thread until it has seen every step.
type watcher struct {
	target Target
	lane   int
	thread string
	steps  int
	ready  func()
	seen   int
	ended  bool   // the stream ended in order
	after  []byte // where to go on
}

func (w *watcher) watch(ctx context.Context) error {
	for w.seen < w.steps {
		w.ended = false
		if err := w.target.stream(ctx, w.lane, Watch, w.request(), w.see); err != nil {
			return err
		}
		if w.seen < w.steps && !w.ended {
			return fmt.Errorf("the stream of a watcher ended after %d of %d events", w.seen, w.steps)
		}
	}
	if w.seen > w.steps {
		return fmt.Errorf("a watcher saw %d events instead of %d", w.seen, w.steps)
	}
	return nil
}

// request begins with the next event, or after the end of a stream that this client
// read too slowly.
func (w *watcher) request() []byte {
	q := &graphdv1.WatchRequest{ThreadId: w.thread, Follow: true}
	if w.after == nil {
		q.Start = &graphdv1.WatchRequest_Now{Now: &emptypb.Empty{}}
		return encode(q)
	}
	const afterField = 3
	return protowire.AppendBytes(protowire.AppendTag(encode(q), afterField, protowire.BytesType), w.after)
}

func (w *watcher) see(message []byte) error {
	e, err := wire.Look(message)
	if err != nil {
		return err
	}
	switch e.Kind {
	case wire.Opened:
		w.ready()
	case wire.Update:
		if w.seen++; w.seen == w.steps {
			return io.EOF
		}
	case wire.End:
		w.ended, w.after = true, append([]byte(nil), e.ResumeAt()...)
	default: // heartbeats and states of the run
	}
	return nil
}
