package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	grpcmetadata "google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/internal/testkit/connectclient"
	"github.com/graphd-dev/graphd/internal/testkit/oidcissuer"
)

const listedOrigin = "https://app.example.com"

// signInServer is a server with TLS for browsers, at https://localhost.
type signInServer struct {
	*callersServer

	issuer  *oidcissuer.Issuer
	address string // of HTTP
	grpc    commandRunner
	audit   string
}

// startSignInServer starts it, with changes of its options.
func startSignInServer(t *testing.T, change func(o *server.Options, write func(name, text string) string)) *signInServer {
	t.Helper()
	s := &signInServer{
		callersServer: &callersServer{file: makeCertificates(t, "--client", "proxy", "--client", "alice", "--client", "people")},
		issuer:        oidcissuer.Start(t, true, time.Now),
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	s.audit = filepath.Join(dir, "audit.jsonl")
	o := server.Options{
		Store: "memory", Graphs: []string{examplesDir}, TLSCert: s.file("server.pem"), TLSKey: s.file("server-key.pem"),
		CallerOptions: server.CallerOptions{
			TokenIssuers: write("issuers.yaml", fmt.Sprintf(
				"issuers:\n  - { issuer: %q, audiences: [graphd], claims: { name: email, groups: groups }, group_prefix: \"login:\" }\n", s.issuer.URL)),
			IssuerTransport: s.issuer.HTTP.Transport,
		},
		AccessOptions: server.AccessOptions{Access: write("access.yaml", `bindings: [{roles: [admin], groups: ["login:officers", clerks]}]`)},
		HTTPOptions:   server.HTTPOptions{HTTP: "127.0.0.1:0", MaxHTTPConnections: 100, HTTPOrigins: []string{listedOrigin}},
		LimitOptions:  server.LimitOptions{MaxConnections: 100, MaxMessage: 8 << 20, MaxIncoming: 64 << 20, Stall: 30 * time.Second},
		AuditOptions:  server.AuditOptions{Audit: []string{"file:" + s.audit}},
		SignInOptions: server.SignInOptions{
			HTTPURL: "https://localhost", SignInIssuer: s.issuer.URL, SignInClient: oidcissuer.Client,
			SignInSecretFile: write("secret", oidcissuer.Secret+"\n"), SignInScopes: []string{"openid", "email"}, HTTPSession: time.Hour,
		},
	}
	if change != nil {
		change(&o, write)
	}
	s.grpc = startServerWith(t, o)
	_, s.address, _ = strings.Cut(s.grpc.http, "://")
	return s
}

// newBrowser makes a client that keeps cookies and knows both certificates. certificate is that of a
// client, "" = none.
func (s *signInServer) newBrowser(t *testing.T, certificate string) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	text, err := os.ReadFile(s.file("ca.pem"))
	require.NoError(t, err)
	require.True(t, roots.AppendCertsFromPEM(text))
	roots.AddCert(s.issuerCertificate())
	config := &tls.Config{RootCAs: roots}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(s.file("client-"+certificate+".pem"), s.file("client-"+certificate+"-key.pem"))
		require.NoError(t, err)
		config.Certificates = []tls.Certificate{pair}
	}
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	transport := &http.Transport{
		TLSClientConfig: config, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == "localhost:443" || address == "localhost:80" {
				address = s.address
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Jar: jar}
}

// issuerCertificate returns the certificate of httptest.
func (s *signInServer) issuerCertificate() *x509.Certificate {
	transport, _ := s.issuer.HTTP.Transport.(*http.Transport)
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.issuer.URL, "https://"), transport.TLSClientConfig)
	if err != nil {
		panic(err)
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0]
}

// connTo makes calls over HTTP by a client, with headers.
func connTo(client *http.Client) *connectclient.Conn {
	return &connectclient.Conn{URL: "https://localhost", Client: client, Options: []connect.ClientOption{connect.WithProtoJSON()}}
}

func post(t *testing.T, client *http.Client, path string, headers ...string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://localhost"+path, strings.NewReader("{}"))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text), answer.Header
}

func signInAt(t *testing.T, client *http.Client) string {
	t.Helper()
	answer, err := client.Get("https://localhost/sign-in?to=/inbox")
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode, string(text))
	require.Equal(t, "https://localhost/inbox", answer.Request.URL.String())
	for _, c := range client.Jar.Cookies(answer.Request.URL) {
		if c.Name == "__Host-graphd-session" {
			return c.Value
		}
	}
	return ""
}

const serverInfoPath = "/graphd.v1.RegistryService/GetServerInfo"

// A person signs in in a browser, answers, and signs out, which ends the stream.
func TestPeopleSignInInABrowser(t *testing.T) {
	s := startSignInServer(t, nil)
	browser := s.newBrowser(t, "")
	code, text, _ := post(t, browser, serverInfoPath)
	require.Equal(t, http.StatusUnauthorized, code)
	require.Contains(t, text, "NO_CREDENTIALS")
	sealed := signInAt(t, browser)
	require.NotEmpty(t, sealed)

	conn := connTo(browser)
	info, err := graphdv1.NewRegistryServiceClient(conn).GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{})
	require.NoError(t, err)
	require.Equal(t, "ana@example.org session default", info.GetCaller().GetPrincipal()+" "+info.GetCaller().GetHow()+" "+info.GetCaller().GetTenant())
	require.Equal(t, []string{"login:officers"}, info.GetCaller().GetGroups())

	graphs := graphdv1.NewGraphServiceClient(conn)
	_, err = graphs.StartRun(t.Context(), &graphdv1.StartRunRequest{
		Run: &graphdv1.RunSpec{
			ThreadId: "t1", Graph: "refund-review", CreateThread: true,
			Start: &graphdv1.RunSpec_Input{Input: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: refundInput}}},
		},
		Wait: durationpb.New(time.Minute),
	})
	require.NoError(t, err)
	resumed, err := graphs.ResumeRun(t.Context(), &graphdv1.ResumeRunRequest{
		Resume: &graphdv1.ResumeSpec{ThreadId: "t1", Single: &graphdv1.InterruptResponse{
			Outcome: &graphdv1.InterruptResponse_Value{Value: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: `{"decision":"approved"}`}}},
		}},
		Wait: durationpb.New(time.Minute),
	})
	require.NoError(t, err)
	require.NotNil(t, resumed)
	listed, err := graphdv1.NewInterruptServiceClient(conn).ListInterrupts(t.Context(), &graphdv1.ListInterruptsRequest{ThreadId: "t1", Filter: `state = "*"`})
	require.NoError(t, err)
	require.NotEmpty(t, listed.GetInterrupts())
	require.Equal(t, "ana@example.org session", listed.GetInterrupts()[0].GetResponder()+" "+listed.GetInterrupts()[0].GetResponderHow())

	watch, err := graphdv1.NewInterruptServiceClient(conn).WatchInterrupts(t.Context(), &graphdv1.WatchInterruptsRequest{})
	require.NoError(t, err)
	_, err = watch.Recv()
	require.NoError(t, err)
	code, _, _ = post(t, browser, "/sign-out")
	require.Equal(t, http.StatusNoContent, code)
	for err == nil {
		_, err = watch.Recv()
	}
	require.Equal(t, codes.Unauthenticated, status.Code(err), err)
	require.Equal(t, "SESSION_EXPIRED", reasonOfRefusal(err))
	_, text, _ = post(t, browser, serverInfoPath, "Cookie", "__Host-graphd-session="+sealed)
	require.Contains(t, text, "SESSION_EXPIRED")
	_, text, _ = post(t, browser, serverInfoPath, "Cookie", "__Host-graphd-session="+sealed[:100])
	require.Contains(t, text, "SESSION_INVALID")

	var record []byte
	require.Eventually(t, func() bool { // records are written after the calls
		record, err = os.ReadFile(s.audit)
		return err == nil && strings.Contains(string(record), `"principal":"ana@example.org","how":"session"`)
	}, time.Minute, 10*time.Millisecond)
	require.NotContains(t, string(record), sealed[:20])
}

// On this machine a session needs no TLS.
func TestPeopleSignInWithoutTLS(t *testing.T) {
	s := startSignInServer(t, func(o *server.Options, _ func(name, text string) string) {
		o.TLSCert, o.TLSKey, o.HTTPURL = "", "", "http://localhost"
	})
	browser := s.newBrowser(t, "")
	answer, err := browser.Get("http://localhost/sign-in")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, "http://localhost/", answer.Request.URL.String())
	answer, err = browser.Post("http://localhost"+serverInfoPath, "application/json", strings.NewReader("{}"))
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Contains(t, string(text), "session")
}

// Nothing but the own page of the server makes calls with a session.
func TestSessionsAreOfTheOwnPage(t *testing.T) {
	s := startSignInServer(t, nil)
	browser := s.newBrowser(t, "")
	sealed := signInAt(t, browser)
	for name, c := range map[string]struct {
		headers []string
		says    string
	}{
		"the page":               {[]string{"Origin", "https://localhost", "Sec-Fetch-Site", "same-origin"}, `"how":"session"`},
		"another site":           {[]string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, "ORIGIN_REFUSED"},
		"a form of another site": {[]string{"Origin", "https://evil.example", "Content-Type", "text/plain"}, "ORIGIN_REFUSED"},
		"a listed site":          {[]string{"Origin", listedOrigin, "Sec-Fetch-Site", "cross-site"}, "NO_CREDENTIALS"},
		"a form":                 {[]string{"Content-Type", "application/x-www-form-urlencoded"}, ""},
		"as metadata":            {[]string{"Cookie", "", "Graphd-Session", sealed}, "NO_CREDENTIALS"},
		"with a bad token":       {[]string{"Authorization", "Bearer gk_x"}, "TOKEN_UNKNOWN"},
	} {
		t.Run(name, func(t *testing.T) {
			client := browser
			if name == "as metadata" {
				client = &http.Client{Transport: browser.Transport}
			}
			code, text, header := post(t, client, serverInfoPath, c.headers...)
			require.Contains(t, strings.ReplaceAll(text, `": "`, `":"`), c.says)
			require.Equal(t, name == "the page", code == http.StatusOK, text)
			require.Empty(t, header.Get("Access-Control-Allow-Credentials"))
		})
	}
	conn := s.dialAs(t, s.grpc, "", nil)
	ctx := grpcmetadata.AppendToOutgoingContext(t.Context(), "graphd-session", sealed)
	_, err := graphdv1.NewRegistryServiceClient(conn).GetServerInfo(ctx, &graphdv1.GetServerInfoRequest{})
	require.Equal(t, "NO_CREDENTIALS", reasonOfRefusal(err), "over gRPC it is none")
}

// The page learns how to sign in, also where there is no issuer.
func TestThePageLearnsHowToSignIn(t *testing.T) {
	waysOf := func(url string) (kinds []string) {
		answer, err := http.Get(url + "/session")
		require.NoError(t, err)
		defer func() { require.NoError(t, answer.Body.Close()) }()
		var got struct {
			Ways []struct{ Kind string } `json:"ways"`
		}
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&got))
		for _, way := range got.Ways {
			kinds = append(kinds, way.Kind)
		}
		return kinds
	}
	plain := startServerWith(t, server.Options{
		Store: "memory", HTTPOptions: server.HTTPOptions{HTTP: "127.0.0.1:0", MaxHTTPConnections: 100},
		LimitOptions: server.LimitOptions{MaxMessage: 8 << 20, MaxIncoming: 64 << 20, Stall: 30 * time.Second},
	})
	require.Empty(t, waysOf(plain.http))
	require.Equal(t, []string{"token"}, waysOf(startAccessServer(t).http))
	answer, err := http.Get(plain.http + "/sign-in")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusNotFound, answer.StatusCode)
}

// A proxy that has authenticated a person names it in a header, which counts with the certificate
// of the proxy alone.
func TestTheHeaderOfATrustedProxy(t *testing.T) {
	s := startSignInServer(t, func(o *server.Options, write func(name, text string) string) {
		o.TLSClientCA = filepath.Join(filepath.Dir(o.TLSCert), "ca.pem")
		o.CertificateRules = write("rules.yaml", "rules:\n  - { cn: proxy, name: the-proxy, groups: [clerks] }\n  - { cn: alice, name: alice }\n")
		o.ProxyOptions = server.ProxyOptions{TrustHeader: "X-Forwarded-User", TrustGroupsHeader: "X-Forwarded-Groups", TrustCertificate: "cn:proxy"}
	})
	for name, c := range map[string]struct {
		certificate string
		headers     []string
		says        string
	}{
		"the proxy":                {"proxy", []string{"X-Forwarded-User", "bén", "X-Forwarded-Groups", "clerks, staff"}, `"caller":{"principal":"bén","groups":["clerks","staff"],"how":"proxy","tenant":"default"}`},
		"another client":           {"alice", []string{"X-Forwarded-User", "ben"}, "PROXY_UNTRUSTED"},
		"an unnamed client":        {"people", []string{"X-Forwarded-User", "ben"}, "PROXY_UNTRUSTED"},
		"groups of another client": {"alice", []string{"X-Forwarded-Groups", "clerks"}, "PROXY_UNTRUSTED"},
		"nobody":                   {"proxy", []string{"X-Forwarded-User", ""}, "PROXY_HEADER_INVALID"},
		"the proxy without a name": {"proxy", nil, "NO_CREDENTIALS"},
		"another client, itself":   {"alice", nil, `"principal":"alice"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, text, _ := post(t, s.newBrowser(t, c.certificate), serverInfoPath, c.headers...)
			var compact any
			require.NoError(t, json.Unmarshal([]byte(text), &compact))
			require.Contains(t, strings.ReplaceAll(strings.ReplaceAll(text, `": `, `":`), `, "`, `,"`), c.says)
		})
	}
	browser := s.newBrowser(t, "proxy")
	require.NotEmpty(t, signInAt(t, browser), "people may sign in through the proxy, too")
	_, text, _ := post(t, browser, serverInfoPath)
	require.Contains(t, text, "session")
	_, text, _ = post(t, browser, serverInfoPath, "X-Forwarded-User", "ben")
	require.Contains(t, text, "proxy", "the header comes first")

	conn := s.dialAs(t, s.grpc, "proxy", s.file)
	ctx := grpcmetadata.AppendToOutgoingContext(t.Context(), "x-forwarded-user", "ben", "graphd-forwarded-user-bin", "ben")
	info, err := graphdv1.NewRegistryServiceClient(conn).GetServerInfo(ctx, &graphdv1.GetServerInfoRequest{})
	require.NoError(t, err)
	require.Equal(t, "the-proxy certificate", info.GetCaller().GetPrincipal()+" "+info.GetCaller().GetHow(), "over gRPC it is none")
}
