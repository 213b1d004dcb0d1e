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

// defaultPort is where a server listens that was told nothing else.
const defaultPort = "7700"

// CompleteAddress returns the address that [Dial] calls: with the port 7700 where a host has none, of
// which gRPC would call port 443. Addresses of resolvers that know no ports stay as they are. The
// error is an [*AddressError].
func CompleteAddress(address string) (string, error) {
	scheme, host, problem := splitAddress(address)
	if problem == "" && host != "" {
		host, problem = completeHost(host)
	}
	if problem != "" {
		return "", &AddressError{Address: address, Reason: problem}
	}
	return scheme + host, nil
}

// splitAddress returns the scheme of an address with what belongs to it, and the host behind it; all
// is scheme where no host is to be seen.
func splitAddress(address string) (scheme, host, problem string) {
	if address == "" {
		return "", "", "is empty"
	}
	if name, _, isURL := strings.Cut(address, "://"); isURL {
		switch {
		case slices.Contains([]string{"http", "https", "grpc", "grpcs", "tcp", "redis", "rediss"}, name):
			return "", "", "has " + name + "://, which is not that of a server"
		case name == "dns": // a host is after the name server
			at := strings.LastIndex(address, "/") + 1
			return requireHost(address[:at], address[at:])
		}
		return address, "", ""
	}
	for _, prefix := range []string{"unix:", "unix-abstract:", "passthrough:", "vsock:", "xds:"} {
		if strings.HasPrefix(address, prefix) {
			return address, "", ""
		}
	}
	if host, isName := strings.CutPrefix(address, "dns:"); isName {
		return requireHost("dns:", host)
	}
	return "", address, ""
}

func requireHost(scheme, host string) (_, _, problem string) {
	if host == "" {
		problem = "names no host"
	}
	return scheme, host, problem
}

// completeHost returns a host with its port, or what is wrong with it.
func completeHost(host string) (completed, problem string) {
	_, port, err := net.SplitHostPort(host)
	isBracketed := strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")
	switch {
	case err == nil && port != "":
		return host, ""
	case err == nil:
		return "", "has no port after its colon"
	case net.ParseIP(host) != nil && strings.Contains(host, ":"):
		return "", "is an IPv6 address without brackets, like [::1]"
	case isBracketed || !strings.Contains(host, ":"):
		return host + ":" + defaultPort, ""
	default:
		return "", "is no host with a port"
	}
}
