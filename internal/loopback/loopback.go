// Package loopback knows the hosts that lead to this machine.
package loopback

import (
	"net"
	"strings"
)

// IsHost reports whether a host is this machine: localhost or an address of the loopback
// interface. A host with a port is none.
func IsHost(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
