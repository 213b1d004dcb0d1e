package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/server"
)

// makeCertificates calls `graphd certs` for a new folder and returns a function that
// returns the path of a file in it.
func makeCertificates(t *testing.T, args ...string) func(name string) string {
	t.Helper()
	dir := t.TempDir()
	r := commandRunner{}.runCommand(t, append([]string{"certs", "--dir", dir}, args...)...)
	require.Equal(t, exit.CodeDone, r.code, r.err)
	return func(name string) string { return filepath.Join(dir, name) }
}

func TestCertsCommandPrintsTheCommandsThatUseThem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	r := commandRunner{}.runCommand(t, "certs", "--dir", dir, "--host", "10.0.0.5", "--client", "alice")
	require.Equal(t, exit.CodeDone, r.code, r.err)
	at := func(words string) string { return strings.ReplaceAll(words, "DIR", dir) }
	require.Contains(t, r.out, at("wrote  DIR/ca.pem\n"))
	require.Contains(t, r.out, at("graphd serve --tls-cert DIR/server.pem --tls-key DIR/server-key.pem --tls-client-ca DIR/ca.pem\n"))
	require.Contains(t, r.out, at("graphd health --tls-ca DIR/ca.pem --tls-cert DIR/client-alice.pem --tls-key DIR/client-alice-key.pem\n"))

	r = commandRunner{}.runCommand(t, "certs", "--dir", dir, "--client", "bob", "-o", "json")
	require.Equal(t, exit.CodeDone, r.code, r.err)
	require.JSONEq(t, at(`{"ca": "DIR/ca.pem", "server": {"cert": "DIR/server.pem", "key": "DIR/server-key.pem"},
		"client": {"cert": "DIR/client-bob.pem", "key": "DIR/client-bob-key.pem"},
		"written": ["DIR/client-bob-key.pem", "DIR/client-bob.pem"],
		"kept": ["DIR/ca.pem", "DIR/ca-key.pem", "DIR/server.pem", "DIR/server-key.pem"]}`), r.out)

	r = commandRunner{}.runCommand(t, "certs", "--dir", dir, "--client", "bob")
	require.Equal(t, exit.CodeUsage, r.code)
	require.Contains(t, r.err, "--force")
}

// Each kind of server meets each kind of client. Where they don't agree, the client
// prints what to do.
func TestClientsCallServersOverTLS(t *testing.T) {
	file, other := makeCertificates(t, "--client", "alice"), makeCertificates(t, "--client", "mallory")
	plain := startServer(t, "memory")
	secure := startServerWith(t, server.Options{Store: "memory", TLSCert: file("server.pem"), TLSKey: file("server-key.pem")})
	mutual := startServerWith(t, server.Options{
		Store: "memory", TLSCert: file("server.pem"), TLSKey: file("server-key.pem"), TLSClientCA: file("ca.pem"),
	})
	ca := []string{"--tls-ca", file("ca.pem")}
	alice := []string{"--tls-cert", file("client-alice.pem"), "--tls-key", file("client-alice-key.pem")}
	mallory := []string{"--tls-cert", other("client-mallory.pem"), "--tls-key", other("client-mallory-key.pem")}
	environment := map[string]string{
		"GRAPHD_TLS_CA": file("ca.pem"), "GRAPHD_TLS_CERT": file("client-alice.pem"), "GRAPHD_TLS_KEY": file("client-alice-key.pem"),
	}
	for name, test := range map[string]struct {
		server commandRunner
		args   []string
		env    map[string]string
		code   int
		says   string
	}{
		"plain":                   {server: plain, code: exit.CodeDone},
		"TLS":                     {server: secure, args: ca, code: exit.CodeDone},
		"client certificate":      {server: mutual, args: append(ca, alice...), code: exit.CodeDone},
		"environment":             {server: mutual, env: environment, code: exit.CodeDone},
		"environment put aside":   {server: plain, env: environment, args: []string{"--tls=false"}, code: exit.CodeDone},
		"plain to TLS":            {server: secure, code: exit.CodeError, says: "name its CA with --tls-ca FILE"},
		"TLS to plain":            {server: plain, args: ca, code: exit.CodeError, says: "leave out --tls, --tls-ca"},
		"environment to plain":    {server: plain, env: environment, code: exit.CodeError, says: "GRAPHD_TLS"},
		"CAs of the system":       {server: secure, args: []string{"--tls"}, code: exit.CodeError, says: "name the file of its CA with --tls-ca"},
		"the same by environment": {server: secure, env: map[string]string{"GRAPHD_TLS": "true"}, code: exit.CodeError, says: "name the file of its CA"},
		"another CA":              {server: secure, args: []string{"--tls-ca", other("ca.pem")}, code: exit.CodeError, says: "name the file of its CA"},
		"no client certificate":   {server: mutual, args: ca, code: exit.CodeError, says: "--tls-cert FILE and --tls-key FILE"},
		"client of another CA":    {server: mutual, args: append(ca, mallory...), code: exit.CodeError, says: "--tls-client-ca"},
		"no key":                  {server: mutual, args: alice[:2], code: exit.CodeUsage, says: "belong together"},
		"wrong variable":          {server: secure, env: map[string]string{"GRAPHD_TLS": "please"}, code: exit.CodeUsage, says: `GRAPHD_TLS is "please"`},
		"contradiction":           {server: secure, args: append([]string{"--tls=false"}, ca...), code: exit.CodeUsage, says: "contradict"},
		"broken file":             {server: secure, args: []string{"--tls-ca", file("ca-key.pem")}, code: exit.CodeUsage, says: "no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			test.server.env = test.env
			for _, verb := range [][]string{{"health", "--timeout", "1m"}, {"inbox"}} {
				r := test.server.runCommand(t, append(verb, test.args...)...)
				require.Equal(t, test.code, r.code, r.err)
				require.Contains(t, r.err, test.says)
			}
		})
	}
}

// A whole run over TLS; the commands that it prints lead to the same server and
// don't have the token.
func TestRunsOverTLS(t *testing.T) {
	file := makeCertificates(t, "--client", "alice")
	call := startServerWith(t, server.Options{
		Store: "memory", Graphs: []string{examplesDir},
		TLSCert: file("server.pem"), TLSKey: file("server-key.pem"), TLSClientCA: file("ca.pem"),
	})
	flags := []string{
		"--tls-ca", file("ca.pem"), "--tls-cert", file("client-alice.pem"), "--tls-key", file("client-alice-key.pem"),
	}
	with := func(args ...string) []string { return append(append(args, flags...), "--token", "t0-ken") }
	r := call.runCommand(t, with("run", "refund-review", "--thread", "t1", "--input", refundInput)...)
	require.Equal(t, exit.CodeWaiting, r.code, r.err)
	require.Contains(t, r.out+r.err, strings.Join(flags, " "))
	require.NotContains(t, r.out+r.err, "t0-ken")
	r = call.runCommand(t, with("resume", "t1", "--value", `{"decision": "approved"}`)...)
	require.Equal(t, exit.CodeDone, r.code, r.err)
	r = call.runCommand(t, "run", "--help")
	require.NotContains(t, r.out, "t0-ken")
	call.env = map[string]string{"GRAPHD_TOKEN": "t0-ken"}
	require.NotContains(t, call.runCommand(t, "run", "--help").out, "t0-ken", "a variable is no default that --help shows")
}

func TestAServerDoesNotStartWithUnusableFiles(t *testing.T) {
	file := makeCertificates(t)
	for name, test := range map[string]struct {
		options server.Options
		says    string
	}{
		"missing":        {server.Options{TLSCert: file("none.pem"), TLSKey: file("server-key.pem")}, "--tls-cert " + file("none.pem") + ": no such file"},
		"another key":    {server.Options{TLSCert: file("server.pem"), TLSKey: file("ca-key.pem")}, "--tls-key " + file("ca-key.pem") + ": the key does not fit"},
		"no certificate": {server.Options{TLSCert: file("ca-key.pem"), TLSKey: file("ca-key.pem")}, "a private key and no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Listen, test.options.Store = "127.0.0.1:0", "memory"
			_, err := server.NewServer(t.Context(), test.options, zap.NewNop(), "test")
			var usage *exit.UsageError
			require.ErrorAs(t, err, &usage)
			require.Contains(t, usage.Message, test.says)
			require.Contains(t, usage.Hint, "want a PEM file")
		})
	}
}

// A demo calls a server of its own, whatever the environment says.
func TestADemoIgnoresTheTLSOfOtherServers(t *testing.T) {
	r := commandRunner{env: map[string]string{"GRAPHD_TLS_CA": "missing.pem", "GRAPHD_TOKEN": "t0-ken"}}.
		runCommand(t, "demo", "--answer", `{"decision": "approved"}`)
	require.Equal(t, exit.CodeDone, r.code, r.err)
}
