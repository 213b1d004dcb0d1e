// Package tlsalert finds the alert by which the other side of a connection has ended it.
package tlsalert

import (
	"errors"
	"net"
)

// Describe returns the alert of the other side that an error is about, like "tls: bad
// certificate".
func Describe(err error) (text string, ok bool) {
	alert, ok := errors.AsType[*net.OpError](err)
	if !ok || alert.Op != "remote error" { // crypto/tls has no type for it
		return "", false
	}
	return alert.Err.Error(), true
}

// ReadUnread returns the alert that came before a write of a connection failed, nil = none
// did. With TLS 1.3 a server refuses the certificate of a client after the handshake, when
// the client writes already. Who writes only learns that the connection is broken.
func ReadUnread(conn net.Conn, failed error) error {
	if broken, ok := errors.AsType[*net.OpError](failed); !ok || broken.Timeout() {
		return nil
	}
	// The connection is broken, so reading does not wait.
	_, err := conn.Read(make([]byte, 1))
	if _, ok := Describe(err); !ok {
		return nil
	}
	return err
}
