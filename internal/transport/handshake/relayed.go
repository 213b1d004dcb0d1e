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

// relayingCredentials take the TLS of relayed connections as it is.
type relayingCredentials struct {
	credentials.TransportCredentials
}

// TakeRelayed returns credentials that make no handshake with relayed connections.
func TakeRelayed(c credentials.TransportCredentials) credentials.TransportCredentials {
	return relayingCredentials{c}
}

// ServerHandshake makes the handshake of a connection that is not relayed.
func (c relayingCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	relayed, ok := findRelayed(raw)
	if !ok {
		return c.TransportCredentials.ServerHandshake(raw)
	}
	info := RelayedInfo{credentials.TLSInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}}
	if state := relayed.RelayedTLS(); state != nil {
		info.State, info.SecurityLevel = *state, credentials.PrivacyAndIntegrity
	}
	return raw, info, nil
}

// RelayedInfo is the AuthInfo of a relayed connection, with the TLS of its client; the State is
// zero in plain text. Metadata of its calls may have what the other door says of the client.
type RelayedInfo struct {
	credentials.TLSInfo
}

// findRelayed returns a relayed connection below others.
func findRelayed(conn net.Conn) (relayedConn, bool) {
	for {
		if relayed, ok := conn.(relayedConn); ok {
			return relayed, true
		}
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return nil, false
		}
		conn = above.NetConn()
	}
}

// Clone makes a copy.
func (c relayingCredentials) Clone() credentials.TransportCredentials {
	return relayingCredentials{c.TransportCredentials.Clone()}
}
