package server

import (
	"net"
	"slices"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/egress"
)

// newEndpointPolicy returns the endpoints that the server may dial. Without an
// option, a server that only its own machine reaches may dial all hosts, because
// a caller that puts a graph there can dial them anyway, and any other server none. The
// error is a *egress.PatternError.
func (o *Options) newEndpointPolicy(listen net.Addr) (*egress.Policy, error) {
	patterns := o.EndpointAllow
	if len(patterns) == 0 && isLocal(listen) {
		patterns = []string{egress.AnyHost}
	}
	return egress.NewPolicy(patterns)
}

// parseEndpointPatterns reads the values of --endpoint-allow. The error is an
// *exit.UsageError.
func parseEndpointPatterns(patterns []string) (*egress.Policy, error) {
	policy, err := egress.NewPolicy(patterns)
	if err != nil {
		return nil, exit.Usagef("--%s: %v", FlagEndpointAllow, err).
			WithHint("want HOST:PORT, *.example.com:443, 10.0.0.0/8:7777, unix:/run/node.sock or %s", egress.AnyHost)
	}
	return policy, nil
}

// NewEndpointCheck returns the check of the endpoints of graphs that a server makes with
// these patterns; nil = there is no pattern, and no check. An empty pattern allows
// nothing. The error is an *exit.UsageError.
func NewEndpointCheck(patterns []string) (func(endpoint string) error, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	policy, err := parseEndpointPatterns(slices.DeleteFunc(slices.Clone(patterns), func(text string) bool { return text == "" }))
	if err != nil {
		return nil, err
	}
	return policy.CheckEndpoint, nil
}

// SplitEndpointPatterns divides the patterns of the variable GRAPHD_ENDPOINT_ALLOW.
func SplitEndpointPatterns(text string) []string {
	if text == "" {
		return nil
	}
	return splitValues(FlagEndpointAllow, text)
}
