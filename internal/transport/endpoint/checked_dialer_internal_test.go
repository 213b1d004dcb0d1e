package endpoint

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// refusingPolicy refuses endpoints and addresses by name.
type refusingPolicy struct {
	target  string
	refused map[string]bool

	mu      sync.Mutex
	checked []string
}

func (p *refusingPolicy) AdmitEndpoint(endpoint string) (string, func(network, address string) error, error) {
	if p.refused[endpoint] {
		return "", nil, errors.New("endpoint " + endpoint + " is refused")
	}
	return p.target, func(_, address string) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.checked = append(p.checked, address)
		if p.refused[address] {
			return errors.New("address " + address + " is refused")
		}
		return nil
	}, nil
}

// newListener accepts connections, and counts them.
func newListener(t *testing.T) (address string, accepted chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	accepted = make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- struct{}{}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String(), accepted
}

func newResolver(addresses ...string) *manual.Resolver {
	r := manual.NewBuilderWithScheme("dns")
	r.InitialState(newState(addresses...))
	return r
}

func newState(addresses ...string) resolver.State {
	var s resolver.State
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	return s
}

func executeOn(t *testing.T, e *Executor, endpoint string) (reason, message string) {
	t.Helper()
	spec := &graph.NodeSpec{Name: "n", Remote: &graph.RemoteSpec{Endpoint: endpoint}}
	r := e.Execute(t.Context(), &runtime.Task{Node: &graph.Node{Name: "n", Spec: spec}, Graph: &graph.Graph{Name: "g"}})
	require.NotNil(t, r.Failure)
	require.True(t, r.Failure.Permanent)
	return r.Failure.Reason, r.Failure.Message
}

// A graph that was stored before the policy, or by another server, has its endpoint
// refused when it is dialled.
func TestARefusedEndpointFailsTheTask(t *testing.T) {
	policy := &refusingPolicy{target: "dns:///away:1", refused: map[string]bool{"pricing:80": true}}
	e := NewExecutor(nil, Options{Policy: policy})
	defer e.Close()
	reason, message := executeOn(t, e, "pricing:80")
	require.Equal(t, runtime.FailedEndpointRefused, reason)
	require.Equal(t, "endpoint pricing:80 is refused", message)
	require.Zero(t, e.pool.countOpen())
}

// A name that leads to a refused address is never connected to it, and fails the
// task. The next task looks again where the name leads.
func TestARefusedAddressFailsTheTask(t *testing.T) {
	address, accepted := newListener(t)
	policy := &refusingPolicy{target: "dns:///pricing:80", refused: map[string]bool{address: true}}
	e := NewExecutor(nil, Options{Policy: policy, DialOptions: []grpc.DialOption{grpc.WithResolvers(newResolver(address))}})
	defer e.Close()
	for range 2 {
		reason, message := executeOn(t, e, "pricing:80")
		require.Equal(t, runtime.FailedEndpointRefused, reason)
		require.Equal(t, "address "+address+" is refused", message)
		require.Zero(t, e.pool.countOpen(), "the next task has another connection")
	}
	require.Empty(t, accepted)
	require.Contains(t, policy.checked, address)
}

// One refused address among several does not matter while another one answers.
func TestOtherAddressesOfANameAreUsed(t *testing.T) {
	good, bad := serveNothing(t), "127.0.0.1:1"
	policy := &refusingPolicy{target: "dns:///pricing:80", refused: map[string]bool{bad: true}}
	e := NewExecutor(nil, Options{Policy: policy, DialOptions: []grpc.DialOption{grpc.WithResolvers(newResolver(bad, good))}})
	defer e.Close()
	c := &endpointCall{executor: e, spec: graph.RemoteSpec{Endpoint: "pricing:80"}, task: &runtime.Task{}}
	require.NoError(t, c.acquireEndpoint(t.Context()))
	defer c.releaseEndpoint()
	require.NoError(t, c.waitReady(t.Context()))
}

// The check comes after the name was resolved for the last time: a name that leads
// elsewhere than before is refused then.
func TestANameThatMovesToARefusedAddressIsRefused(t *testing.T) {
	good := serveNothing(t)
	bad, accepted := newListener(t)
	names := newResolver(good)
	policy := &refusingPolicy{target: "dns:///pricing:80", refused: map[string]bool{bad: true}}
	e := NewExecutor(nil, Options{Policy: policy, DialOptions: []grpc.DialOption{grpc.WithResolvers(names)}})
	defer e.Close()
	c := &endpointCall{executor: e, spec: graph.RemoteSpec{Endpoint: "pricing:80"}, task: &runtime.Task{}}
	require.NoError(t, c.acquireEndpoint(t.Context()))
	defer c.releaseEndpoint()
	require.NoError(t, c.waitReady(t.Context()))
	names.UpdateState(newState(bad))
	for state := c.endpoint.conn.GetState(); state != connectivity.TransientFailure; state = c.endpoint.conn.GetState() {
		require.True(t, c.endpoint.conn.WaitForStateChange(t.Context(), state))
	}
	var refused *refusedError
	require.ErrorAs(t, c.waitReady(t.Context()), &refused)
	require.Empty(t, accepted)
}

// gRPC would read a target of an unknown scheme as the name of a host.
func TestAnUnknownSchemeIsNotDialled(t *testing.T) {
	e := NewExecutor(nil, Options{Policy: &refusingPolicy{target: "vsock:3:1024"}})
	defer e.Close()
	reason, message := executeOn(t, e, "vsock:3:1024")
	require.Equal(t, runtime.FailedNode, reason)
	require.Contains(t, message, `can't dial the scheme "vsock"`)
}

// The environment of the server may have a proxy for other programs. Through it no
// address could be checked.
func TestProxiesOfTheEnvironmentAreNotUsed(t *testing.T) {
	proxy, accepted := newListener(t)
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "HTTP_PROXY"} {
		t.Setenv(name, "http://"+proxy)
	}
	policy := &refusingPolicy{target: "dns:///192.0.2.1:443", refused: map[string]bool{"192.0.2.1:443": true}}
	e := NewExecutor(nil, Options{Policy: policy})
	defer e.Close()
	reason, _ := executeOn(t, e, "pricing:443")
	require.Equal(t, runtime.FailedEndpointRefused, reason)
	require.Empty(t, accepted)
	for _, address := range policy.checked {
		require.Equal(t, netip.MustParseAddrPort("192.0.2.1:443"), netip.MustParseAddrPort(address))
	}
}

// A socket is checked by its path.
func TestSocketsAreChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	policy := &refusingPolicy{target: "unix:" + path, refused: map[string]bool{path: true}}
	e := NewExecutor(nil, Options{Policy: policy})
	defer e.Close()
	reason, _ := executeOn(t, e, "unix:"+path)
	require.Equal(t, runtime.FailedEndpointRefused, reason)

	d := &checkedDialer{}
	for _, address := range []string{"unix://" + path, "unix:" + path} {
		conn, err := d.dialAddress(context.WithoutCancel(t.Context()), address)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}

// serveNothing serves gRPC without services until the test ends.
func serveNothing(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer()
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String()
}
