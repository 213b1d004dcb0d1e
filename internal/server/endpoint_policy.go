package server

import (
	"net"

	"github.com/graphd-dev/graphd/internal/egress"
)

// newEndpointPolicy returns the endpoints that the server may dial. Without an
// option, a server that only its own machine reaches may dial all hosts, because
// a caller that puts a graph there can dial them anyway, and any other server none. The
// error is a *egress.PatternError.
func (o *Options) newEndpointPolicy(listen net.Addr) (*egress.Policy, error) {
	patterns := o.EndpointAllow
	if at, ok := listen.(*net.TCPAddr); len(patterns) == 0 && ok && at.IP.IsLoopback() {
		patterns = []string{egress.AnyHost}
	}
	return egress.NewPolicy(patterns)
}
