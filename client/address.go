package client

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// AddressError refuses an address at which no server can be.
type AddressError struct {
	Address string
	Reason  string // like "names no port"
}

// Error says what would be right.
func (e *AddressError) Error() string {
	return fmt.Sprintf("the address %q of the server %s: want HOST:PORT, like localhost:7700", e.Address, e.Reason)
}

// CheckAddress returns an [*AddressError] for an address that [Dial] refuses: gRPC would dial port 443
// of a host without a port. Addresses of resolvers that know no ports are taken as they are.
func CheckAddress(address string) error {
	if problem := addressProblem(address); problem != "" {
		return &AddressError{Address: address, Reason: problem}
	}
	return nil
}

// addressProblem returns what is wrong with an address, "" = nothing.
func addressProblem(address string) string {
	if address == "" {
		return "is empty"
	}
	if scheme, rest, isURL := strings.Cut(address, "://"); isURL {
		switch {
		case slices.Contains([]string{"http", "https", "grpc", "grpcs", "tcp", "redis", "rediss"}, scheme):
			return "has " + scheme + "://, which is not that of a server"
		case scheme == "dns": // a host is after the name server
			return hostProblem(rest[strings.LastIndex(rest, "/")+1:])
		}
		return ""
	}
	for _, scheme := range []string{"unix:", "unix-abstract:", "passthrough:", "vsock:", "xds:"} {
		if strings.HasPrefix(address, scheme) {
			return ""
		}
	}
	return hostProblem(strings.TrimPrefix(address, "dns:"))
}

// hostProblem returns what is wrong with a host and its port, "" = nothing.
func hostProblem(address string) string {
	if address == "" {
		return "names no host"
	}
	_, port, err := net.SplitHostPort(address)
	isBracketed := strings.HasPrefix(address, "[") && strings.HasSuffix(address, "]")
	switch {
	case err == nil && port != "":
		return ""
	case net.ParseIP(address) != nil && strings.Contains(address, ":"):
		return "is an IPv6 address without brackets and port, like [::1]:7700"
	case err == nil || isBracketed || !strings.Contains(address, ":"):
		return "names no port"
	default:
		return "is no host with a port"
	}
}
