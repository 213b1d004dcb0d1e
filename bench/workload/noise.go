package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// noiseLanes is how many calls of a Noise may be under way.
const noiseLanes = 64

// ErrNotRefused says that a server took every call of a Noise.
var ErrNotRefused = errors.New("noise: no call was refused")

// Noise calls at a fixed rate, also when calls are refused for a quota.
type Noise struct {
	perSecond float64
	one       One
	began     time.Time
	stop      context.CancelCauseFunc
	lanes     sync.WaitGroup

	next, made, refused atomic.Int64
	firstRefusal        chan struct{}
	markFirst           func() // closes firstRefusal

	mu     sync.Mutex
	broken error
}

// errStopped ends a Noise.
var errStopped = errors.New("noise: stopped")

// StartNoise begins to do an operation so many times a second.
func StartNoise(ctx context.Context, perSecond float64, one One) *Noise {
	n := &Noise{perSecond: perSecond, one: one, began: time.Now(), firstRefusal: make(chan struct{})}
	n.markFirst = sync.OnceFunc(func() { close(n.firstRefusal) })
	ctx, n.stop = context.WithCancelCause(ctx)
	for lane := range noiseLanes {
		n.lanes.Go(func() {
			if err := n.callOnTime(ctx, lane); err != nil && !errors.Is(context.Cause(ctx), errStopped) {
				n.breakOff(err)
			}
		})
	}
	return n
}

// callOnTime makes the calls whose time has come, until ctx ends.
func (n *Noise) callOnTime(ctx context.Context, lane int) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due := n.began.Add(time.Duration(float64(n.next.Add(1)-1) / n.perSecond * float64(time.Second)))
		timer.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		err := n.one(ctx, lane, &Times{})
		switch {
		case err == nil:
		case status.Code(err) == codes.ResourceExhausted:
			n.refused.Add(1)
			n.markFirst()
		default:
			return err
		}
		n.made.Add(1)
	}
}

func (n *Noise) breakOff(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.broken == nil {
		n.broken = fmt.Errorf("noise: %w", err)
	}
	n.stop(err)
}

// AwaitRefusal waits until a call was refused. The error is why there will be none.
func (n *Noise) AwaitRefusal(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.lanes.Wait()
	}()
	select {
	case <-n.firstRefusal:
		return nil
	case <-ended:
		return n.readFailure()
	case <-ctx.Done():
		return errors.Join(ErrNotRefused, context.Cause(ctx))
	}
}

func (n *Noise) readFailure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.broken
}

// Stop ends the calls, and returns their number per second. The error is that of a call
// which failed in another way than by a quota, or ErrNotRefused.
func (n *Noise) Stop() (perSecond float64, err error) {
	perSecond = float64(n.made.Load()) / time.Since(n.began).Seconds()
	n.stop(errStopped)
	n.lanes.Wait()
	if err := n.readFailure(); err != nil {
		return perSecond, err
	}
	if n.refused.Load() == 0 {
		return perSecond, ErrNotRefused
	}
	return perSecond, nil
}
