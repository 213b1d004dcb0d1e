package setup

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"time"

	"github.com/graphd-dev/graphd/internal/tlsalert"
)

// dialer opens the connections of a client.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// defaultDialTimeout is that of go-redis.
const defaultDialTimeout = 5 * time.Second

// useTLS has each connection begin with the configuration of its time; current nil = that
// of the URL. fromURL is what the URL says of TLS, nil = it asks for none.
func useTLS(current func() *tls.Config, fromURL *tls.Config, timeout time.Duration) dialer {
	if fromURL == nil {
		return nil
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		config := fromURL
		if current != nil {
			config = current().Clone()
			config.ServerName, config.InsecureSkipVerify = fromURL.ServerName, fromURL.InsecureSkipVerify
		}
		d := tls.Dialer{NetDialer: &net.Dialer{Timeout: cmp.Or(timeout, defaultDialTimeout)}, Config: config}
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return alertConn{conn}, nil
	}
}

// alertConn is a connection whose failed writes tell the alert that the server has sent.
type alertConn struct{ net.Conn }

// Write writes to the connection.
func (a alertConn) Write(b []byte) (int, error) {
	n, err := a.Conn.Write(b)
	if alert := tlsalert.ReadUnread(a.Conn, err); alert != nil {
		return n, alert
	}
	return n, err
}

// checkTLS refuses files of TLS beside a URL that asks for plain text.
func (s *storeConfig) checkTLS(current func() *tls.Config, u *url.URL) error {
	if current != nil && u.Scheme != schemeTLS {
		return &Error{Server: s.server, Problem: ProblemURL, Is: "files of TLS are given, and the URL asks for plain text", Want: "want rediss://"}
	}
	return nil
}

// schemeTLS is the scheme of URLs for TLS.
const schemeTLS = "rediss"

// explainTLS returns the *Error of a handshake that fails, nil for other errors.
func (s *storeConfig) explainTLS(err error) *Error {
	if alert, ok := tlsalert.Describe(err); ok {
		return &Error{
			s.server, ProblemTLS, "the server ends the TLS handshake: " + alert,
			"give a certificate that it accepts with --redis-tls-cert and --redis-tls-key",
		}
	}
	if failed, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &Error{
			s.server, ProblemTLS, "the certificate of the server can't be trusted: " + failed.Err.Error(),
			"name its CA with --redis-tls-ca, and the server as its certificate has it",
		}
	}
	return nil
}
