package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// requireUsage requires an error that names an option and says what would be right.
func requireUsage(t *testing.T, err error, says, name string) {
	t.Helper()
	if says == "" {
		require.NoError(t, err, name)
		return
	}
	require.ErrorContains(t, err, says, name)
	refused, ok := errors.AsType[*exit.UsageError](err)
	require.True(t, ok, name)
	require.Contains(t, refused.Message, "--http-", name)
	require.NotEmpty(t, refused.Hint, name)
}

func TestOptionsOfSignIn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string // "" = valid
	}{
		"none":                      {func(o *Options) { *o = Options{} }, ""},
		"all":                       {func(*Options) {}, ""},
		"a client without a secret": {func(o *Options) { o.SignInSecretFile = "" }, ""},
		"a URL alone":               {func(o *Options) { o.SignInOptions = SignInOptions{HTTPURL: "https://a.example:8443"} }, ""},
		"plain text to this host":   {func(o *Options) { o.HTTPURL = "http://localhost:7780/" }, ""},
		"plain text, insecure":      {func(o *Options) { o.HTTPURL, o.Insecure = "http://a.example", true }, ""},
		"plain text":                {func(o *Options) { o.HTTPURL = "http://a.example" }, "would send sessions in plain text"},
		"another scheme":            {func(o *Options) { o.HTTPURL = "ftp://a.example" }, "would send sessions in plain text"},
		"a URL with a path":         {func(o *Options) { o.HTTPURL = "https://a.example/graphd" }, "--http-url is no URL of a host"},
		"a URL with a user":         {func(o *Options) { o.HTTPURL = "https://u:p@a.example" }, "--http-url is no URL of a host"},
		"no URL":                    {func(o *Options) { o.HTTPURL = "" }, "needs --http-url"},
		"a URL without an address":  {func(o *Options) { o.SignInOptions, o.HTTP = SignInOptions{HTTPURL: "https://a.example"}, "" }, "--http-url needs --http"},
		"no address":                {func(o *Options) { o.HTTP, o.HTTPURL = "", "" }, "--http-sign-in-issuer needs --http"},
		"no issuers":                {func(o *Options) { o.TokenIssuers = "" }, "--http-sign-in-issuer needs --token-issuers"},
		"no client":                 {func(o *Options) { o.SignInClient = "" }, "needs --http-sign-in-client"},
		"a client alone":            {func(o *Options) { o.SignInOptions = SignInOptions{SignInClient: "c"} }, "--http-sign-in-client needs --http-sign-in-issuer"},
		"a secret alone":            {func(o *Options) { o.SignInOptions = SignInOptions{SignInSecretFile: "c"} }, "--http-sign-in-secret-file needs --http-sign-in-issuer"},
		"keys alone":                {func(o *Options) { o.SignInOptions = SignInOptions{HTTPSessionKeyFile: "c"} }, "--http-session-key-file needs --http-sign-in-issuer"},
		"a client of two words":     {func(o *Options) { o.SignInClient = "a b" }, `--http-sign-in-client "a b" is no id`},
		"an issuer in plain text":   {func(o *Options) { o.SignInIssuer = "http://login.example.org" }, "can't be used for discovery"},
		"an issuer that is no URL":  {func(o *Options) { o.SignInIssuer = "corp" }, "can't be used for discovery"},
		"a short session":           {func(o *Options) { o.HTTPSession = time.Second }, "--http-session is 1s"},
		"a long session":            {func(o *Options) { o.HTTPSession = 13 * time.Hour }, "--http-session is 13h0m0s"},
		"no scope":                  {func(o *Options) { o.SignInScopes = nil }, "--http-sign-in-scopes has no openid"},
		"no openid":                 {func(o *Options) { o.SignInScopes = []string{"email"} }, "--http-sign-in-scopes has no openid"},
		"too many scopes":           {func(o *Options) { o.SignInScopes = slices.Repeat([]string{"openid"}, 33) }, "--http-sign-in-scopes has 33 scopes"},
		"a scope of two words":      {func(o *Options) { o.SignInScopes = []string{"openid", "a b"} }, "which is no scope"},
	} {
		o := Options{
			CallerOptions: CallerOptions{TokenIssuers: "issuers.yaml"},
			HTTPOptions:   HTTPOptions{HTTP: "127.0.0.1:0", MaxHTTPConnections: 1},
			SignInOptions: SignInOptions{
				HTTPURL: "https://a.example", SignInIssuer: "https://login.example.org", SignInClient: "graphd", SignInSecretFile: "s",
				SignInScopes: []string{"openid"}, HTTPSession: time.Hour,
			},
		}
		c.change(&o)
		requireUsage(t, o.validateSignIn(), c.want, name)
	}
}

func TestOptionsOfATrustedProxy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string // "" = valid
	}{
		"none":                   {func(o *Options) { *o = Options{} }, ""},
		"all":                    {func(*Options) {}, ""},
		"no groups":              {func(o *Options) { o.TrustGroupsHeader = "" }, ""},
		"no CA":                  {func(o *Options) { o.TLSClientCA = "" }, "--http-trust-header needs --tls-client-ca"},
		"no certificate":         {func(o *Options) { o.TrustCertificate = "" }, "--http-trust-header needs --http-trust-certificate"},
		"no address":             {func(o *Options) { o.HTTP = "" }, "--http-trust-header needs --http"},
		"callers are not known":  {func(o *Options) { o.APIKeys = "" }, "needs a way to know who calls"},
		"groups alone":           {func(o *Options) { o.TrustHeader = "" }, "--http-trust-groups-header needs --http-trust-header"},
		"a certificate alone":    {func(o *Options) { o.TrustHeader, o.TrustGroupsHeader = "", "" }, "--http-trust-certificate needs --http-trust-header"},
		"the same header":        {func(o *Options) { o.TrustGroupsHeader = "x-user" }, "--http-trust-groups-header is the header of --http-trust-header"},
		"no header":              {func(o *Options) { o.TrustHeader = "X User" }, "is no header that can name a caller"},
		"the header of tokens":   {func(o *Options) { o.TrustHeader = "authorization" }, "is no header that can name a caller"},
		"the header of tenants":  {func(o *Options) { o.TrustHeader = "graphd-tenant" }, "is no header that can name a caller"},
		"groups in the cookie":   {func(o *Options) { o.TrustGroupsHeader = "Cookie" }, "is no header that can name a caller"},
		"a certificate of none":  {func(o *Options) { o.TrustCertificate = "proxy" }, "--http-trust-certificate \"proxy\" has no kind of name"},
		"a certificate of all":   {func(o *Options) { o.TrustCertificate = "dns:*" }, "is not a DNS name"},
		"another kind of a name": {func(o *Options) { o.TrustCertificate = "email:a@example.org" }, "has an unknown kind of name"},
	} {
		o := Options{
			TLSClientCA: "ca.pem", CallerOptions: CallerOptions{APIKeys: "keys.yaml"}, HTTPOptions: HTTPOptions{HTTP: "127.0.0.1:0", MaxHTTPConnections: 1},
			ProxyOptions: ProxyOptions{TrustHeader: "X-User", TrustGroupsHeader: "X-Groups", TrustCertificate: "dns:proxy.example.com"},
		}
		c.change(&o)
		requireUsage(t, o.validateProxy(), c.want, name)
	}
}

func TestFilesOfSignIn(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) string {
		path := filepath.Join(dir, fmt.Sprint(len(text)))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o640))
		return path
	}
	core, logs := observer.New(zap.WarnLevel)
	log := zap.New(core)
	o := SignInOptions{}
	secret, err := o.readSignInSecret(log)
	require.NoError(t, err)
	require.Empty(t, secret)
	o.SignInSecretFile = write("s3cret\n")
	secret, err = o.readSignInSecret(log)
	require.NoError(t, err)
	require.Equal(t, "s3cret", secret)
	require.Equal(t, 1, logs.FilterMessageSnippet("others may read the secret").Len())
	for _, path := range []string{write(""), write("\n "), write("a\nbcdef"), write(strings.Repeat("s", 5000)), filepath.Join(dir, "none")} {
		o.SignInSecretFile = path
		_, err = o.readSignInSecret(log)
		requireUsage(t, err, "--http-sign-in-secret-file", path)
	}

	keys, err := o.readSessionKeys(log)
	require.NoError(t, err)
	others, err := o.readSessionKeys(log)
	require.NoError(t, err)
	require.NotEqual(t, keys[0].Secret, others[0].Secret, "a key for each process")
	o.HTTPSessionKeyFile = write("k2: " + strings.Repeat("B", 43) + "=\nk1: " + strings.Repeat("A", 43) + "=\n")
	keys, err = o.readSessionKeys(log)
	require.NoError(t, err)
	require.Equal(t, "[k2 k1]", fmt.Sprint(keys))
	require.Equal(t, 1, logs.FilterMessageSnippet("others may read the keys of sessions").Len())
	for _, path := range []string{write("k1: c2hvcnQ="), write(""), filepath.Join(dir, "none")} {
		o.HTTPSessionKeyFile = path
		_, err = o.readSessionKeys(log)
		requireUsage(t, err, "--http-session-key-file", path)
	}
}

// People sign in at an issuer whose tokens count.
func TestTheIssuerOfSignInIsTrusted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "issuers.yaml")
	require.NoError(t, os.WriteFile(path, []byte("issuers: [{issuer: https://login.example.org, audiences: [graphd]}]"), 0o600))
	o := Options{CallerOptions: CallerOptions{TokenIssuers: path}, SignInOptions: SignInOptions{
		HTTPURL: "https://a.example/", SignInIssuer: "https://login.example.org", SignInClient: "c", SignInScopes: []string{"openid"}, HTTPSession: time.Hour,
	}}
	callers, err := o.openCallerFiles(time.Second, zap.NewNop())
	require.NoError(t, err)
	handler, err := o.openSignIn(callers, zap.NewNop())
	require.NoError(t, err)
	require.Equal(t, "__Host-graphd-session", handler.SessionCookie())
	require.NotNil(t, callers.Sessions)
	o.SignInIssuer = "https://login.example.org/"
	_, err = o.openSignIn(callers, zap.NewNop())
	requireUsage(t, err, "is no issuer of --token-issuers", "another spelling")
}

// The name of --http-url leads to the server.
func TestHostsOfTheServer(t *testing.T) {
	o := Options{HTTPOptions: HTTPOptions{HTTPHosts: []string{"a.example"}}, SignInOptions: SignInOptions{HTTPURL: "https://b.example:8443"}}
	require.Equal(t, []string{"a.example", "b.example"}, o.listHTTPHosts())
	o.TLSCert = "cert.pem"
	require.Nil(t, o.listHTTPHosts())
	require.NotNil(t, (&Options{}).listHTTPHosts())
}
