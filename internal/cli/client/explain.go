package client

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// explainCall adds a hint to the error of a call for which no connection could be
// made.
func (s Security) explainCall(
	ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	return s.explainError(call(ctx, method, req, reply, conn, options...))
}

// explainStream is explainCall for a stream, which fails when it is opened.
func (s Security) explainStream(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, options...)
	return stream, s.explainError(err)
}

// explainError returns an *exit.HintError around an error when the connection could
// not be protected in a way that client and server agree on.
func (s Security) explainError(err error) error {
	if status.Code(err) != codes.Unavailable {
		return err
	}
	message := status.Convert(err).Message()
	for _, c := range connectionCauses(s.UsesTLS()) {
		if strings.Contains(message, c.words) {
			return &exit.HintError{Err: err, Hint: c.hint}
		}
	}
	return err
}

// connectionCause is a remedy for connections whose error has these words of gRPC
// or crypto/tls.
type connectionCause struct{ words, hint string }

// connectionCauses lists causes and remedies. The first that fits counts.
func connectionCauses(usesTLS bool) []connectionCause {
	// One of these, by chance, tells that the server closed the connection.
	const preface, reset, closed = "error reading server preface", "connection reset by peer", "write: broken pipe"
	if !usesTLS {
		const encrypted = "the server does not answer in plain text; when it serves TLS, " +
			"name its CA with --tls-ca FILE, or give --tls when its CA is one of the system"
		return []connectionCause{{preface, encrypted}, {reset, encrypted}, {closed, encrypted}}
	}
	const (
		plain = "the server does not serve TLS at this address: leave out --tls, --tls-ca, --tls-cert and --tls-key " +
			"(GRAPHD_TLS and so on), or start it with --tls-cert and --tls-key"
		authority = "the server's certificate is of another CA: name the file of its CA with --tls-ca, " +
			"or give --tls alone when its CA is one of the system"
		name  = "call the server by a name or an address of its certificate, or make it one with this name"
		valid = "the server needs a new certificate; check the clocks, too"
		own   = "the server refuses this client's certificate, or the lack of one: " +
			"give one of its --tls-client-ca with --tls-cert FILE and --tls-key FILE"
		ended = "the server ended the connection; when it wants certificates of clients, " +
			"give one of its --tls-client-ca with --tls-cert FILE and --tls-key FILE"
	)
	return []connectionCause{
		{"does not look like a TLS handshake", plain},
		{"handshake failed: EOF", plain},
		{"certificate signed by unknown authority", authority},
		{"certificate is not trusted", authority}, // of macOS
		{"certificate is valid for", name},
		{"certificate is not valid for any names", name},
		{"IP SANs", name},
		{"has expired or is not yet valid", valid},
		{"remote error: tls: protocol version", "the server takes no TLS of version 1.2 or newer: bring it up to date"},
		{"remote error: tls:", own},
		{"handshake failed: read", plain},
		{preface, ended},
		{reset, ended},
		{closed, ended},
		{"missing selected ALPN property", "the address serves TLS without HTTP/2: name the address of gRPC"},
	}
}
