package transport

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

func spec(n int) graph.RemoteSpec {
	return graph.RemoteSpec{Endpoint: fmt.Sprintf("127.0.0.1:%d", 20000+n)}
}

func (p *endpoints) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// The bubble of synctest fails when a goroutine of a connection outlives it.
func TestConnectionsThatNoCallUsesAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewRemote(nil, EndpointOptions{MaxConns: 1000}).conns
		for n := range 300 {
			e, err := p.acquire(t.Context(), spec(n), func() { t.Fatal("there is room") })
			require.NoError(t, err)
			p.release(e)
		}
		kept, err := p.acquire(t.Context(), spec(0), nil)
		require.NoError(t, err)
		require.Equal(t, 300, p.open())
		later(defaultEndpointIdle + time.Second)
		require.Equal(t, 1, p.open(), "the one in use stays")
		p.release(kept)
		later(defaultEndpointIdle + time.Second)
		require.Zero(t, p.open())
	})
}

func TestConnectionsHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewRemote(nil, EndpointOptions{MaxConns: 2}).conns
		defer p.close()
		for n := range 300 {
			e, err := p.acquire(t.Context(), spec(n), nil)
			require.NoError(t, err)
			require.LessOrEqual(t, p.open(), 2)
			p.release(e)
		}
		first, err := p.acquire(t.Context(), spec(1), nil)
		require.NoError(t, err)
		_, err = p.acquire(t.Context(), spec(2), nil)
		require.NoError(t, err)

		leaving, leave := context.WithCancel(t.Context())
		got := make(chan error, 2)
		told := make(chan bool, 2)
		for n, ctx := range []context.Context{leaving, t.Context()} {
			go func() {
				_, err := p.acquire(ctx, spec(3+n), func() { told <- true })
				got <- err
			}()
			<-told
		}
		require.True(t, p.crowded())
		leave()
		require.ErrorIs(t, <-got, context.Canceled)
		p.release(first)
		require.NoError(t, <-got)
		require.False(t, p.crowded())
	})
}

func TestAnEndpointThatIsAwayLetsOthersHaveItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRemote(nil, EndpointOptions{MaxConns: 1})
		defer r.Close()
		away := &endpointCall{remote: r, spec: spec(1), task: &runtime.Task{}}
		require.NoError(t, away.connect(t.Context()))
		require.NoError(t, away.yield(t.Context()), "nothing waits, so it stays")

		other := &endpointCall{remote: r, spec: spec(2), task: &runtime.Task{}}
		got := make(chan error)
		go func() { got <- other.connect(t.Context()) }()
		synctest.Wait()
		back := make(chan error)
		go func() { back <- away.yield(t.Context()) }()
		require.NoError(t, <-got)
		other.disconnect()
		require.NoError(t, <-back)
		away.disconnect()
	})
}
