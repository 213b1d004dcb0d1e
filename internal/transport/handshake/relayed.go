package handshake

import (
	"crypto/tls"
	"net"

	"google.golang.org/grpc/credentials"
)

// relayedConn is a connection that another door of this server relays in memory. That door has
// made the handshake with the client.
type relayedConn interface {
	// RelayedTLS returns the TLS of the client, nil = plain text.
	RelayedTLS() *tls.ConnectionState
}

// processConn is a connection in memory that this process has made to itself.
type processConn interface {
	// IsOfProcess marks it.
	IsOfProcess()
}

// relayingCredentials take the TLS of relayed connections as it is.
type relayingCredentials struct {
	credentials.TransportCredentials
}

// TakeRelayed returns credentials that make no handshake with relayed connections, nor with those of
// this process.
func TakeRelayed(c credentials.TransportCredentials) credentials.TransportCredentials {
	return relayingCredentials{c}
}

// ServerHandshake makes the handshake of a connection that comes from outside.
func (c relayingCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if _, ok := findBelow[processConn](raw); ok {
		return raw, NewProcessInfo(), nil
	}
	relayed, ok := findBelow[relayedConn](raw)
	if !ok {
		return c.TransportCredentials.ServerHandshake(raw)
	}
	return raw, NewRelayedInfo(relayed.RelayedTLS()), nil
}

// RelayedInfo is the AuthInfo of a relayed connection, with the TLS of its client; the State is
// zero in plain text. Metadata of its calls may have what the other door says of the client.
type RelayedInfo struct {
	credentials.TLSInfo
}

// NewRelayedInfo returns the AuthInfo of a client with this TLS, nil = plain text.
func NewRelayedInfo(secured *tls.ConnectionState) RelayedInfo {
	info := RelayedInfo{credentials.TLSInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}}
	if secured != nil {
		info.State, info.SecurityLevel = *secured, credentials.PrivacyAndIntegrity
	}
	return info
}

// ProcessInfo is the AuthInfo of calls that this process makes to itself. Their caller is the process.
type ProcessInfo struct{ credentials.CommonAuthInfo }

// NewProcessInfo returns the AuthInfo of what does not leave the process.
func NewProcessInfo() ProcessInfo {
	return ProcessInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}
}

// AuthType names the kind.
func (ProcessInfo) AuthType() string { return "process" }

// findBelow returns a connection of a kind below others.
func findBelow[Kind any](conn net.Conn) (Kind, bool) {
	for {
		if found, ok := conn.(Kind); ok {
			return found, true
		}
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			var none Kind
			return none, false
		}
		conn = above.NetConn()
	}
}

// Clone makes a copy.
func (c relayingCredentials) Clone() credentials.TransportCredentials {
	return relayingCredentials{c.TransportCredentials.Clone()}
}
