package drawing

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"time"

	"github.com/dop251/goja"
)

// Limits bound what the layout of a graph costs.
type Limits struct {
	Time   time.Duration
	Memory uint64 // bytes more than before
	Calls  int    // JavaScript functions inside of each other
}

// DefaultLimits are enough for the largest graph that a server takes by default, unless many of its
// edges are long.
func DefaultLimits() Limits { return Limits{Time: 20 * time.Second, Memory: 1 << 30, Calls: 50_000} }

// LimitError says that the layout of a graph costs more than it may.
type LimitError struct {
	Nodes int
	Limit string
}

// Error names the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the graph is too large to draw: the layout of its %d nodes needs more than %s", e.Nodes, e.Limit)
}

// checkInterval is how often the memory is looked at.
const checkInterval = 20 * time.Millisecond

// interruptAtLimits interrupts the script when it has reached a limit, or
// when the context ends, until stop is called.
func (l Limits) interruptAtLimits(ctx context.Context, vm *goja.Runtime) (stop func()) {
	ctx, cancel := context.WithTimeout(ctx, l.Time)
	most := heapSize() + l.Memory
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(checkInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				vm.Interrupt(l.Time.String())
				return
			case <-ticker.C:
				if heapSize() > most {
					vm.Interrupt(fmt.Sprintf("%d MiB of memory", l.Memory>>20))
					return
				}
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// explainInterrupt returns the error of a script that has failed.
func (l Limits) explainInterrupt(ctx context.Context, err error, nodes int) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if interrupted, ok := errors.AsType[*goja.InterruptedError](err); ok {
		return &LimitError{Nodes: nodes, Limit: fmt.Sprint(interrupted.Value())}
	}
	if _, ok := errors.AsType[*goja.StackOverflowError](err); ok {
		return &LimitError{Nodes: nodes, Limit: fmt.Sprintf("%d calls inside of each other", l.Calls)}
	}
	return fmt.Errorf("the layout of the graph: %w", err)
}

// heapSize returns the bytes of objects, those that are not collected yet among them.
func heapSize() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
