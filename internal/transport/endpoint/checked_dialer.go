package endpoint

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// refusedError is the error of an endpoint, or of an address of it, that the policy
// refuses.
type refusedError struct{ cause error }

// Error tells why.
func (e *refusedError) Error() string { return e.cause.Error() }

// Unwrap returns the error of the policy.
func (e *refusedError) Unwrap() error { return e.cause }

// checkedDialer opens the connections of an endpoint. It checks each address when
// its socket exists and is not connected, so that no answer of a resolver comes
// between the check and the connection.
type checkedDialer struct {
	check   func(network, address string) error // nil = all addresses are allowed
	refused atomic.Pointer[refusedError]        // of the newest refused address, nil = none since the last connection
}

// admitEndpoint returns the target of an endpoint and the dialer of its addresses.
// The error is a *refusedError if the policy refuses the endpoint.
func (p *endpointPool) admitEndpoint(name string) (target string, _ *checkedDialer, err error) {
	if p.opts.Policy == nil {
		return name, &checkedDialer{}, nil
	}
	target, check, err := p.opts.Policy.AdmitEndpoint(name)
	if err != nil {
		return "", nil, &refusedError{err}
	}
	// gRPC would take the whole target for the name of a host.
	if scheme, _, _ := strings.Cut(target, ":"); resolver.Get(scheme) == nil {
		return "", nil, fmt.Errorf("this server can't dial the scheme %q", scheme)
	}
	return target, &checkedDialer{check: check}, nil
}

// dialAddress opens a connection to an address in the form of gRPC: HOST:PORT, or a
// path after "unix:".
func (d *checkedDialer) dialAddress(ctx context.Context, address string) (net.Conn, error) {
	network := "tcp"
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix {
		network, address = "unix", strings.TrimPrefix(path, "//")
	}
	dialer := net.Dialer{ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
		return d.checkAddress(network, address)
	}}
	conn, err := dialer.DialContext(ctx, network, address)
	if err == nil {
		d.refused.Store(nil)
	}
	return conn, err
}

func (d *checkedDialer) checkAddress(network, address string) error {
	if d.check == nil {
		return nil
	}
	err := d.check(network, address)
	if err == nil {
		return nil
	}
	refused := &refusedError{err}
	d.refused.Store(refused)
	return refused
}

// refusedAddress returns the error of a refused address while no other address answers, nil
// for none.
func (e *endpoint) refusedAddress() error {
	if refused := e.dialer.refused.Load(); refused != nil && e.conn.GetState() == connectivity.TransientFailure {
		return refused
	}
	return nil
}
