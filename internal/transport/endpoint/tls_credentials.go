package endpoint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync/atomic"

	"go.uber.org/zap"
	"google.golang.org/grpc/credentials"

	"github.com/graphd-dev/graphd/internal/tlsalert"
)

// tlsCredentials are credentials of TLS for an endpoint. Each handshake uses the
// configuration of its time. The credentials keep why no connection comes about.
type tlsCredentials struct {
	credentials.TransportCredentials

	config  func() *tls.Config
	problem *atomic.Pointer[string] // of the newest connection, nil = none
	log     *zap.Logger
}

// newTLSCredentials makes credentials. config nil = the CAs of the system, and no
// certificate of this server.
func newTLSCredentials(config func() *tls.Config, log *zap.Logger) *tlsCredentials {
	if config == nil {
		system := &tls.Config{MinVersion: tls.VersionTLS12}
		config = func() *tls.Config { return system }
	}
	return &tlsCredentials{
		TransportCredentials: credentials.NewTLS(config()), config: config, problem: &atomic.Pointer[string]{}, log: log,
	}
}

// ClientHandshake makes the handshake of a connection. The errors are those of
// crypto/tls.
func (c *tlsCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := credentials.NewTLS(c.config()).ClientHandshake(ctx, authority, raw)
	if err != nil {
		c.noteProblem(err)
		return conn, info, err
	}
	return &answeredConn{Conn: conn, noteEnd: c.noteProblem, noteAnswer: func() { c.problem.Store(nil) }}, info, nil
}

// Clone makes a copy, for the same endpoint.
func (c *tlsCredentials) Clone() credentials.TransportCredentials {
	clone := *c
	clone.TransportCredentials = c.TransportCredentials.Clone()
	return &clone
}

// noteProblem keeps and logs why a handshake has failed.
func (c *tlsCredentials) noteProblem(err error) {
	text := describeHandshake(err)
	c.problem.Store(&text)
	c.log.Warn("the TLS handshake with an endpoint failed", zap.String("reason", text), zap.Error(err))
}

// describeProblem returns why the newest connection failed, for readers of the thread,
// "" = it is not known or works.
func (c *tlsCredentials) describeProblem() string {
	if c == nil {
		return ""
	}
	if text := c.problem.Load(); text != nil {
		return *text
	}
	return ""
}

// describeHandshake says why a handshake has failed, without names of files and
// without the contents of certificates.
func describeHandshake(err error) string {
	if alert, ok := tlsalert.Describe(err); ok {
		return "it ends the TLS handshake: " + alert
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "no CA that the server trusts has signed its certificate"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "its certificate is for another name"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "its certificate is expired or not valid yet"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "it does not speak TLS"
	}
	return "the TLS handshake fails"
}

// answeredConn is a connection of TLS 1.3, where a server says only after the handshake
// that it refuses the certificate of the client.
type answeredConn struct {
	net.Conn

	noteEnd    func(error) // gets the alert of the other side
	noteAnswer func()
	isAnswered atomic.Bool
}

// Read reads from the connection.
func (a *answeredConn) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	if a.isAnswered.Load() {
		return n, err
	}
	if n > 0 && a.isAnswered.CompareAndSwap(false, true) {
		a.noteAnswer()
		return n, err
	}
	if _, ok := tlsalert.Describe(err); ok {
		a.noteEnd(err)
	}
	return n, err
}

// Write writes to the connection. When it fails, gRPC closes the connection, and reads no
// alert any more.
func (a *answeredConn) Write(b []byte) (int, error) {
	n, err := a.Conn.Write(b)
	if a.isAnswered.Load() {
		return n, err
	}
	if alert := tlsalert.ReadUnread(a.Conn, err); alert != nil {
		a.noteEnd(alert)
		return n, alert
	}
	return n, err
}
