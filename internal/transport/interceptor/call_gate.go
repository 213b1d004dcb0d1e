package interceptor

import (
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// CallGate counts the direct calls that are open, and refuses further ones when the server goes down.
// It is safe for concurrent use.
type CallGate struct {
	mu         sync.Mutex
	openCalls  int
	isDraining bool          // takes no further calls
	isClosed   bool          // and has said so for good
	idle       chan struct{} // closed when isDraining and no call is open
	cutting    sync.Once
	cut        chan struct{} // closed when clients do not wait for open calls any more
}

func newCallGate() *CallGate { return &CallGate{idle: make(chan struct{}), cut: make(chan struct{})} }

// beginCall counts a call. The error is a status: that of a server that is drained, for which clients
// call again, or that of one that is closed.
func (g *CallGate) beginCall() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.isClosed:
		return status.Error(codes.Canceled, "the server in this process is closed")
	case g.isDraining:
		return errDraining()
	}
	g.openCalls++
	return nil
}

func (g *CallGate) endCall() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.openCalls--; g.openCalls == 0 && g.isDraining {
		close(g.idle)
	}
}

// cutPatience is how long handlers may take that were cut, to end with their contexts.
const cutPatience = time.Second

// RefuseCalls refuses further calls.
func (g *CallGate) RefuseCalls() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isDraining && g.openCalls == 0 {
		close(g.idle)
	}
	g.isDraining = true
}

// AwaitCalls waits until the calls that are open have ended, after RefuseCalls. Handlers that were cut
// have cutPatience.
func (g *CallGate) AwaitCalls() {
	select {
	case <-g.idle:
		return
	case <-g.cut:
	}
	patience := time.NewTimer(cutPatience)
	defer patience.Stop()
	select {
	case <-g.idle:
	case <-patience.C:
	}
}

// CutCalls ends the calls that are open, and refuses further ones. Handlers learn it by their
// contexts.
func (g *CallGate) CutCalls() {
	g.RefuseCalls()
	g.cutting.Do(func() { close(g.cut) })
}

// Close has calls fail for good: clients do not call again.
func (g *CallGate) Close() {
	g.RefuseCalls()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isClosed = true
}

// errDraining refuses a call of a server that goes down.
func errDraining() error {
	return reason.BuildStatus(codes.Unavailable, runtime.Errorf(runtime.ReasonServerDraining, "the server is shutting down"), nil)
}
