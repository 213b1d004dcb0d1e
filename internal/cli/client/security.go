package client

import (
	"context"
	"errors"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/loopback"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/tlsfiles"
)

// Security says how calls are protected, and who the caller is. The zero value is
// plain text without a token.
type Security struct {
	SystemRoots bool   // TLS; without CA the server's CA is one of the system
	CA          string // file with CAs of servers; TLS
	Cert, Key   string // files with the client's certificate; TLS
	Token       string // sent with each call; "" = none
	Tenant      string // chosen for each call; "" = the caller's own
}

// UsesTLS reports whether connections use TLS.
func (s Security) UsesTLS() bool { return s.SystemRoots || s.CA != "" || s.Cert != "" || s.Key != "" }

// Flags returns the flags that ask for the same TLS. They have no token: commands
// with them are printed.
func (s Security) Flags() []string {
	var list []string
	if s.SystemRoots {
		list = append(list, "--tls")
	}
	for _, f := range []struct{ name, value string }{{"--tls-ca", s.CA}, {"--tls-cert", s.Cert}, {"--tls-key", s.Key}} {
		if f.value != "" {
			list = append(list, f.name, f.value)
		}
	}
	return list
}

// dialOptions returns the options of a connection to target. The error is an
// *exit.UsageError.
func (s Security) dialOptions(target string) ([]grpc.DialOption, error) {
	protection := insecure.NewCredentials()
	if s.UsesTLS() {
		if (s.Cert == "") != (s.Key == "") {
			return nil, exit.Usagef("--tls-cert and --tls-key belong together, and one is missing").
				WithHint("give both, or neither for a server that wants no certificate of clients")
		}
		config, err := tlsfiles.NewClientConfig(tlsfiles.ClientFiles{CA: s.CA, Cert: s.Cert, Key: s.Key})
		if refused, ok := errors.AsType[*tlsfiles.FileError](err); ok {
			return nil, exit.Usagef("%v", refused).WithHint("%s", refused.Want)
		}
		if err != nil {
			return nil, err
		}
		protection = credentials.NewTLS(config)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(protection),
		grpc.WithChainUnaryInterceptor(s.explainCall), grpc.WithChainStreamInterceptor(s.explainStream),
	}
	if s.Tenant != "" {
		if err := tenant.CheckName(s.Tenant); err != nil {
			return nil, exit.Usagef("--tenant: %v", err).WithHint("want one of the tenants that the caller has")
		}
		options = append(options, grpc.WithPerRPCCredentials(chosenTenant(s.Tenant)))
	}
	if s.Token == "" {
		return options, nil
	}
	if err := s.checkToken(target); err != nil {
		return nil, err
	}
	return append(options, grpc.WithPerRPCCredentials(bearerToken{text: s.Token, needsTLS: s.UsesTLS()})), nil
}

// maxTokenBytes is the largest token that a server reads.
const maxTokenBytes = 16 << 10

// checkToken returns an *exit.UsageError, without the token, when it can't be sent
// or others could read it on the way.
func (s Security) checkToken(target string) error {
	if len(s.Token) > maxTokenBytes {
		return exit.Usagef("--token has %d bytes", len(s.Token)).WithHint("want at most %d, as servers do", maxTokenBytes)
	}
	for _, b := range []byte(s.Token) {
		if b <= ' ' || b > '~' {
			return exit.Usagef("--token has a space or a character that a header can't carry").
				WithHint("want the token alone, without Bearer before it and without a line break")
		}
	}
	if !s.UsesTLS() && !isOnThisHost(target) {
		return exit.Usagef("--token is not sent to %s in plain text, where others could read it", target).
			WithHint("use TLS: name the CA of the server with --tls-ca FILE, or give --tls when its CA is one of the system; GRAPHD_TOKEN is --token, too")
	}
	return nil
}

// isOnThisHost reports whether a target is on this host.
func isOnThisHost(target string) bool {
	if strings.HasPrefix(target, "unix:") {
		return true
	}
	for _, scheme := range []string{"dns:///", "passthrough:///", "dns:", "passthrough:"} {
		target = strings.TrimPrefix(target, scheme)
	}
	host, _, err := net.SplitHostPort(target)
	return err == nil && loopback.IsHost(host)
}

// chosenTenant sends the name of a tenant with each call.
type chosenTenant string

// GetRequestMetadata returns the header with the tenant.
func (c chosenTenant) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"graphd-tenant": string(c)}, nil
}

// RequireTransportSecurity returns false: the name is no secret.
func (chosenTenant) RequireTransportSecurity() bool { return false }

// bearerToken sends a token with each call.
type bearerToken struct {
	text     string
	needsTLS bool
}

// GetRequestMetadata returns the header with the token.
func (b bearerToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.text}, nil
}

// RequireTransportSecurity reports whether gRPC must refuse to send the token in
// plain text.
func (b bearerToken) RequireTransportSecurity() bool { return b.needsTLS }
