package endpoint

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
)

func newEndpointSpec(n int) graph.RemoteSpec {
	return graph.RemoteSpec{Endpoint: fmt.Sprintf("127.0.0.1:%d", 20000+n)}
}

func (p *endpointPool) countOpen() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.bySpec)
}

// The bubble of synctest fails when a goroutine of a connection outlives it.
func TestConnectionsThatNoCallUsesAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewExecutor(nil, Options{MaxConns: 1000}).pool
		for n := range 300 {
			e, err := p.acquireEndpoint(t.Context(), newEndpointSpec(n), func() { t.Fatal("there is room") })
			require.NoError(t, err)
			p.releaseEndpoint(e)
		}
		kept, err := p.acquireEndpoint(t.Context(), newEndpointSpec(0), nil)
		require.NoError(t, err)
		require.Equal(t, 300, p.countOpen())
		waitVirtual(defaultIdleTimeout + time.Second)
		require.Equal(t, 1, p.countOpen(), "the one in use stays")
		p.releaseEndpoint(kept)
		waitVirtual(defaultIdleTimeout + time.Second)
		require.Zero(t, p.countOpen())
	})
}

func TestConnectionsHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewExecutor(nil, Options{MaxConns: 2}).pool
		defer p.closeAll()
		for n := range 300 {
			e, err := p.acquireEndpoint(t.Context(), newEndpointSpec(n), nil)
			require.NoError(t, err)
			require.LessOrEqual(t, p.countOpen(), 2)
			p.releaseEndpoint(e)
		}
		first, err := p.acquireEndpoint(t.Context(), newEndpointSpec(1), nil)
		require.NoError(t, err)
		_, err = p.acquireEndpoint(t.Context(), newEndpointSpec(2), nil)
		require.NoError(t, err)

		leaving, leave := context.WithCancel(t.Context())
		got := make(chan error, 2)
		told := make(chan bool, 2)
		for n, ctx := range []context.Context{leaving, t.Context()} {
			go func() {
				_, err := p.acquireEndpoint(ctx, newEndpointSpec(3+n), func() { told <- true })
				got <- err
			}()
			<-told
		}
		require.True(t, p.hasWaiters())
		leave()
		require.ErrorIs(t, <-got, context.Canceled)
		p.releaseEndpoint(first)
		require.NoError(t, <-got)
		require.False(t, p.hasWaiters())
	})
}

func TestAnEndpointThatIsAwayLetsOthersHaveItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewExecutor(nil, Options{MaxConns: 1})
		defer r.Close()
		away := &endpointCall{executor: r, spec: newEndpointSpec(1), task: &runtime.Task{}}
		require.NoError(t, away.acquireEndpoint(t.Context()))
		require.NoError(t, away.yieldEndpoint(t.Context()), "nothing waits, so it stays")

		other := &endpointCall{executor: r, spec: newEndpointSpec(2), task: &runtime.Task{}}
		got := make(chan error)
		go func() { got <- other.acquireEndpoint(t.Context()) }()
		synctest.Wait()
		back := make(chan error)
		go func() { back <- away.yieldEndpoint(t.Context()) }()
		require.NoError(t, <-got)
		other.releaseEndpoint()
		require.NoError(t, <-back)
		away.releaseEndpoint()
	})
}

// waitVirtual lets virtual time pass.
func waitVirtual(d time.Duration) { <-time.NewTimer(d).C }
