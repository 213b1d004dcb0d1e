package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	grpcmetadata "google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/internal/identity/file"
	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/internal/tlsfiles"
)

const tokenIssuer = "https://login.example.org"

// callersServer is a server over TLS that knows its callers. mutual also wants client
// certificates.
type callersServer struct {
	open, mutual commandRunner
	file         func(name string) string // of certificates
	keys         string                   // file of API keys
	token        string                   // of the key of "first"
	signer       *ecdsa.PrivateKey        // of the issuer
}

func startCallersServer(t *testing.T) *callersServer {
	t.Helper()
	s := &callersServer{file: makeCertificates(t, "--client", "alice", "--client", "mallory")}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	var err error
	s.signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: s.signer.Public(), KeyID: "k1"}}})
	require.NoError(t, err)
	issuers := write("issuers.yaml", fmt.Sprintf(
		"issuers:\n  - { issuer: %q, audiences: [graphd], jwks_file: %q }\n", tokenIssuer, write("jwks.json", string(set))))
	rules := write("rules.yaml", "rules:\n  - { cn: alice, name: \"cert:alice\" }\n")
	s.keys = filepath.Join(dir, "keys.yaml")
	s.token = s.newKey(t, apikey.Key{Name: "first"})
	callers := server.CallerOptions{APIKeys: s.keys, TokenIssuers: issuers}
	may := server.AccessOptions{Access: write("access.yaml", "bindings: [{roles: [admin], principals: [first, \"jwt:ana\", \"cert:alice\"]}]")}
	s.open = startServerWith(t, server.Options{
		Store: "memory", Graphs: []string{examplesDir}, TLSCert: s.file("server.pem"), TLSKey: s.file("server-key.pem"), CallerOptions: callers, AccessOptions: may,
	})
	callers.CertificateRules = rules
	s.mutual = startServerWith(t, server.Options{
		Store: "memory", TLSCert: s.file("server.pem"), TLSKey: s.file("server-key.pem"), TLSClientCA: s.file("ca.pem"), CallerOptions: callers,
		AccessOptions: may,
	})
	return s
}

// newKey adds an API key and returns its token.
func (s *callersServer) newKey(t *testing.T, key apikey.Key) string {
	t.Helper()
	_, token, err := apikey.Create(t.Context(), s.keys, key, time.Now())
	require.NoError(t, err)
	return token
}

// signToken makes a token with claims that are good but for the changes.
func (s *callersServer) signToken(t *testing.T, by crypto.PrivateKey, changes map[string]any) string {
	t.Helper()
	algorithm := jose.ES256
	if _, isSecret := by.([]byte); isSecret {
		algorithm = jose.HS256
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: by}, (&jose.SignerOptions{}).WithHeader("kid", "k1"))
	require.NoError(t, err)
	signed, err := signer.Sign(claimsOf(t, changes))
	require.NoError(t, err)
	token, err := signed.CompactSerialize()
	require.NoError(t, err)
	return token
}

func claimsOf(t *testing.T, changes map[string]any) []byte {
	t.Helper()
	claims := map[string]any{"iss": tokenIssuer, "aud": "graphd", "sub": "jwt:ana", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(claims, changes)
	text, err := json.Marshal(claims)
	require.NoError(t, err)
	return text
}

// dialAs connects with the certificate of a client from certificates, "" = none.
func (s *callersServer) dialAs(t *testing.T, to commandRunner, client string, certificates func(string) string) *grpc.ClientConn {
	t.Helper()
	files := tlsfiles.ClientFiles{CA: s.file("ca.pem")}
	if client != "" {
		files.Cert, files.Key = certificates("client-"+client+".pem"), certificates("client-"+client+"-key.pem")
	}
	config, err := tlsfiles.NewClientConfig(files)
	require.NoError(t, err)
	conn, err := grpc.NewClient(to.server, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

// callEachKind makes a unary call, reads a stream and connects as a worker, and
// returns the errors by kind.
func callEachKind(ctx context.Context, t *testing.T, conn *grpc.ClientConn) map[string]error {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := map[string]error{}
	_, all["unary"] = graphdv1.NewRegistryServiceClient(conn).GetServerInfo(ctx, &graphdv1.GetServerInfoRequest{})
	watch, err := graphdv1.NewGraphServiceClient(conn).Watch(ctx, &graphdv1.WatchRequest{ThreadId: "unknown"})
	if err == nil {
		_, err = watch.Recv()
	}
	if status.Code(err) == codes.NotFound { // what an accepted call gets
		err = nil
	}
	all["stream"] = err
	connect, err := graphdv1.NewWorkerServiceClient(conn).Connect(ctx)
	if err == nil {
		_ = connect.Send(&graphdv1.ConnectRequest{}) // the error is that of Recv
		_, err = connect.Recv()
	}
	if status.Code(err) == codes.InvalidArgument || status.Code(err) == codes.FailedPrecondition {
		err = nil
	}
	all["worker"] = err
	return all
}

func reasonOfRefusal(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

func TestBadCredentialsAreRefused(t *testing.T) {
	s := startCallersServer(t)
	foreign := makeCertificates(t, "--client", "alice")
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(s.signer.Public())
	require.NoError(t, err)
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	good := s.signToken(t, s.signer, nil)
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(claimsOf(t, nil)) + "."
	hour := time.Hour
	key, expiring := s.newKey(t, apikey.Key{Name: "revoked"}), s.newKey(t, apikey.Key{Name: "expiring", Expires: file.NewTime(time.Now().Add(hour))})
	_, err = apikey.Revoke(t.Context(), s.keys, strings.Split(key, "_")[1], time.Now())
	require.NoError(t, err)
	makeKeyExpired(t, s.keys, strings.Split(expiring, "_")[1])
	restarted := startServerWith(t, server.Options{ // it has read the changed keys
		Store: "memory", TLSCert: s.file("server.pem"), TLSKey: s.file("server-key.pem"), CallerOptions: server.CallerOptions{APIKeys: s.keys},
	})
	bearer := func(token string) []string { return []string{"Bearer " + token} }
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for name, test := range map[string]struct {
		server  commandRunner // the zero value is s.open
		client  string        // certificate
		from    func(string) string
		headers []string
		code    codes.Code
		reason  string
	}{
		"no credentials":      {code: codes.Unauthenticated, reason: "NO_CREDENTIALS"},
		"expired":             {headers: bearer(s.signToken(t, s.signer, map[string]any{"exp": at(-hour)})), reason: "TOKEN_EXPIRED"},
		"not yet valid":       {headers: bearer(s.signToken(t, s.signer, map[string]any{"nbf": at(hour)})), reason: "TOKEN_NOT_YET_VALID"},
		"wrong audience":      {headers: bearer(s.signToken(t, s.signer, map[string]any{"aud": "other"})), reason: "TOKEN_AUDIENCE"},
		"wrong issuer":        {headers: bearer(s.signToken(t, s.signer, map[string]any{"iss": "https://evil"})), reason: "TOKEN_ISSUER"},
		"no name":             {headers: bearer(s.signToken(t, s.signer, map[string]any{"sub": ""})), reason: "TOKEN_CLAIM"},
		"alg none":            {headers: bearer(unsigned), reason: "TOKEN_ALGORITHM"},
		"key confusion":       {headers: bearer(s.signToken(t, publicPEM, nil)), reason: "TOKEN_ALGORITHM"},
		"another key":         {headers: bearer(s.signToken(t, stranger, nil)), reason: "TOKEN_SIGNATURE"},
		"truncated":           {headers: bearer(good[:len(good)-6]), reason: "TOKEN_SIGNATURE"}, // 60 of 64 bytes are left
		"without signature":   {headers: bearer(good[:strings.LastIndexByte(good, '.')]), reason: "TOKEN_MALFORMED"},
		"20 kB":               {headers: bearer(strings.Repeat("e", 20_000)), reason: "TOKEN_TOO_LARGE"},
		"100 kB":              {headers: bearer(strings.Repeat("e", 100_000)), code: codes.Internal}, // gRPC does not send it
		"revoked key":         {server: restarted, headers: bearer(key), reason: "TOKEN_REVOKED"},
		"expired key":         {server: restarted, headers: bearer(expiring), reason: "TOKEN_EXPIRED"},
		"wrong secret":        {server: restarted, headers: bearer(key[:len(key)-4] + "AAAA"), reason: "TOKEN_UNKNOWN"},
		"truncated key":       {server: restarted, headers: bearer(key[:20]), reason: "TOKEN_MALFORMED"},
		"JWT without issuers": {server: restarted, headers: bearer(good), reason: "TOKEN_ISSUER"},
		"two headers":         {headers: []string{"Bearer " + good, "Bearer " + good}, reason: "TOKEN_INVALID"},
		"another scheme":      {headers: []string{"Basic " + good}, reason: "TOKEN_INVALID"},
		"without a rule":      {server: s.mutual, client: "mallory", from: s.file, reason: "CERTIFICATE_UNMAPPED"},
		"good certificate, bad token": {
			server: s.mutual, client: "alice", from: s.file, headers: bearer(unsigned), reason: "TOKEN_ALGORITHM",
		},
		"no certificate":            {server: s.mutual, headers: bearer(good), code: codes.Unavailable},
		"certificate of another CA": {server: s.mutual, client: "alice", from: foreign, code: codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			to, md := test.server, grpcmetadata.MD{}
			if to.server == "" {
				to = s.open
			}
			for _, h := range test.headers {
				md.Append("authorization", h)
			}
			want := test.code
			if want == codes.OK {
				want = codes.Unauthenticated
			}
			conn := s.dialAs(t, to, test.client, test.from)
			for kind, err := range callEachKind(grpcmetadata.NewOutgoingContext(t.Context(), md), t, conn) {
				require.Equal(t, want, status.Code(err), "%s: %v", kind, err)
				require.Equal(t, test.reason, reasonOfRefusal(err), kind)
				for _, h := range test.headers {
					_, token, _ := strings.Cut(h, " ")
					require.NotContains(t, err.Error(), token[:12], "%s shows a part of the token", kind)
				}
				require.NotContains(t, err.Error(), "mallory")
			}
		})
	}
}

// makeKeyExpired changes the file of the keys so that a key has expired.
func makeKeyExpired(t *testing.T, path, id string) {
	t.Helper()
	keys, err := apikey.List(path)
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, k := range keys {
		if k.ID == id {
			before := k.Expires.Format(time.RFC3339)
			changed := strings.ReplaceAll(string(text), before, time.Now().Add(-time.Minute).UTC().Format(time.RFC3339))
			require.NotEqual(t, string(text), changed)
			require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
		}
	}
}

// Each kind of credentials is accepted, and its caller is who has answered, whatever
// the client says.
func TestTheCallerIsTheResponder(t *testing.T) {
	s := startCallersServer(t)
	for kind, err := range callEachKind(t.Context(), t, s.dialAs(t, s.mutual, "alice", s.file)) {
		require.NoError(t, err, kind)
	}
	conn := s.dialAs(t, s.open, "", nil)
	for name, caller := range map[string]struct{ token, how string }{
		"jwt:ana": {s.signToken(t, s.signer, nil), "jwt"}, "first": {s.token, "api key"},
	} {
		token := caller.token
		ctx := grpcmetadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
		for kind, err := range callEachKind(ctx, t, conn) {
			require.NoError(t, err, kind)
		}
		thread := "thread-" + strings.ReplaceAll(name, ":", "-")
		flags := []string{"--tls-ca", s.file("ca.pem"), "--token", token}
		r := s.open.runCommand(t, append([]string{"run", "refund-review", "--thread", thread, "--input", refundInput}, flags...)...)
		require.Equal(t, exit.CodeWaiting, r.code, r.err)
		r = s.open.runCommand(t, append([]string{"resume", thread, "--value", `{"decision": "approved"}`}, flags...)...)
		require.Equal(t, exit.CodeDone, r.code, r.err)
		listed, err := graphdv1.NewInterruptServiceClient(conn).ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{ThreadId: thread, Filter: `state = "*"`})
		require.NoError(t, err)
		require.NotEmpty(t, listed.GetInterrupts())
		for _, q := range listed.GetInterrupts() {
			require.Equal(t, name, q.GetResponder())
			require.Equal(t, caller.how, q.GetResponderHow())
			require.Equal(t, "graphd.v1.GraphService/Resume", q.GetResponseMethod())
			require.NotNil(t, q.GetResponseTime())
		}
		runs, err := graphdv1.NewGraphServiceClient(conn).ListRuns(ctx, &graphdv1.ListRunsRequest{ThreadId: thread})
		require.NoError(t, err)
		require.Equal(t, name, runs.GetRuns()[0].GetStartedBy())
		r = s.open.runCommand(t, append([]string{"inbox", "--thread", thread, "--filter", `state = "*"`}, flags...)...)
		require.Contains(t, r.out, "    by  "+name+"  ")
	}
	r := s.open.runCommand(t, "inbox", "--tls-ca", s.file("ca.pem"))
	require.Equal(t, exit.CodeError, r.code)
	require.Contains(t, r.err, string(identity.NoCredentials))
	r = s.open.runCommand(t, "health", "--tls-ca", s.file("ca.pem"))
	require.Equal(t, exit.CodeDone, r.code, r.err)
}
