package interceptor

import (
	"context"
	"crypto/x509"
	"errors"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/auth"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/transport/handshake"
)

// Authenticator tells who has credentials. The error is an *identity.Error, or the
// cause of ctx.
type Authenticator interface {
	Authenticate(ctx context.Context, given identity.Credentials) (identity.Principal, error)
}

// MaxHeaderBytes bounds the headers of a call: a token of the largest size and 16 KiB
// of others. A larger token has a reason as long as it fits; gRPC resets a call with
// more.
const MaxHeaderBytes = identity.MaxTokenBytes + 16<<10

// The header with the token of a call, and its scheme.
const (
	headerAuthorization = "authorization"
	schemeBearer        = "bearer"
)

// authenticateCall records the caller and the tenant of a call, or refuses the call. Health
// checks need no credentials: probes have none.
//
// It runs before the first message of a stream is read. A unary request has been
// decoded: gRPC decodes it before all interceptors, and verifying earlier, where
// headers arrive, would hold up all other calls of the connection. Requests that
// arrive or are decoded are bounded for all clients together, see flow.RequestTracker.
func (i *Interceptors) authenticateCall(ctx context.Context) (context.Context, error) {
	if method, ok := grpc.Method(ctx); ok && isProbe(method) {
		return ctx, nil
	}
	caller, isProcess := processCaller(ctx)
	if !isProcess {
		given, err := readCredentials(ctx)
		if err != nil {
			return nil, err
		}
		if caller, err = i.authenticator.Authenticate(ctx, given); err != nil {
			return nil, err
		}
	}
	recordCaller(ctx, &caller)
	if err := decideTenant(ctx, &caller); err != nil {
		return nil, err
	}
	return i.endWithCredential(ctx, caller.Lifetime), nil
}

// The caller of a process that has the server in it: it may do everything, in every tenant.
const (
	processName = "process"
	processRole = "admin"
)

// processCaller returns who makes a call over a connection in memory, and whether the call came over
// one. The process chooses its tenant.
func processCaller(ctx context.Context) (identity.Principal, bool) {
	if !isOfProcess(ctx) {
		return identity.Principal{}, false
	}
	caller := identity.Principal{Name: processName, Roles: []string{processRole}, How: identity.HowProcess}
	if named := metadata.ValueFromIncomingContext(ctx, headerTenant); len(named) == 1 {
		caller.Tenant = named[0] // chooseTenant checks it
	}
	return caller, true
}

// isOfProcess reports whether a call came over a connection that this process has made to itself.
func isOfProcess(ctx context.Context) bool {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return false
	}
	_, isProcess := p.AuthInfo.(handshake.ProcessInfo)
	return isProcess
}

// endWithCredential returns the context of a call, which ends when its credential does. That of
// a unary call is ctx.
func (i *Interceptors) endWithCredential(ctx context.Context, credential identity.Lifetime) context.Context {
	c, ok := ctx.Value(callContextKey{}).(*callContext)
	if !ok || !c.isStream || credential == nil {
		return ctx
	}
	limited, end := context.WithCancelCause(ctx)
	c.limited, c.endLimited = limited, end
	go contain.Func(func() { end(credential.WaitForEnd(limited)) }, contain.LogPanic(i.log, "waiting for the end of a credential panicked"))()
	return limited
}

// credentialEndOr ends the wait for the end of the credential of a call. It returns the refusal
// with which that has ended the call, or the error of the call.
func (c *callContext) credentialEndOr(err error) error {
	if c.limited == nil {
		return err
	}
	c.endLimited(nil)
	if refused, ok := errors.AsType[*identity.Error](context.Cause(c.limited)); ok {
		return refused
	}
	return err
}

// checkCaller returns why a call that goes no further is refused in any case; nil = it
// is not, or callers are not known.
func (i *Interceptors) checkCaller(ctx context.Context) (err error) {
	if i.authenticator == nil {
		return nil
	}
	if p := contain.Call(func() { _, err = i.authenticateCall(ctx) }); p != nil {
		return p
	}
	return err
}

// admitUnknownCaller decides the tenant of a call on a server that does not know its
// callers: there is one alone.
func (i *Interceptors) admitUnknownCaller(ctx context.Context, method string) error {
	if i.authenticator != nil || isProbe(method) {
		return nil
	}
	return decideTenant(ctx, nil)
}

// readCredentials returns the credentials of a call. The error is an *identity.Error.
func readCredentials(ctx context.Context) (identity.Credentials, error) {
	given := identity.Credentials{}
	if p, ok := peer.FromContext(ctx); ok {
		given.Certificates, given.Relayed = verifiedChainOf(p.AuthInfo), relayedOf(ctx, p.AuthInfo)
	}
	switch len(metadata.ValueFromIncomingContext(ctx, headerAuthorization)) {
	case 0:
		return given, nil
	case 1:
		token, err := auth.AuthFromMD(ctx, schemeBearer)
		if err == nil && token != "" {
			given.Token = token
			return given, nil
		}
	}
	return identity.Credentials{}, &identity.Error{Reason: identity.TokenInvalid, Field: headerAuthorization}
}

// verifiedChainOf returns the chain of the client certificate that TLS has verified,
// leaf first; nil = none.
func verifiedChainOf(info credentials.AuthInfo) []*x509.Certificate {
	if relayed, ok := info.(handshake.RelayedInfo); ok {
		info = relayed.TLSInfo
	}
	secure, ok := info.(credentials.TLSInfo)
	if !ok || len(secure.State.VerifiedChains) == 0 {
		return nil
	}
	return secure.State.VerifiedChains[0]
}

// relayedOf returns what the door for browsers hands on, nil for calls over gRPC: their clients
// choose all metadata.
func relayedOf(ctx context.Context, info credentials.AuthInfo) *identity.Relayed {
	if _, ok := info.(handshake.RelayedInfo); !ok {
		return nil
	}
	return &identity.Relayed{
		Sessions: metadata.ValueFromIncomingContext(ctx, identity.MetadataSession),
		Users:    metadata.ValueFromIncomingContext(ctx, identity.MetadataForwardedUser),
		Groups:   metadata.ValueFromIncomingContext(ctx, identity.MetadataForwardedGroups),
	}
}
