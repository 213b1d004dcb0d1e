package main

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	headers "google.golang.org/grpc/metadata"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/server"
)

// tokenRecorder is a server that answers `graphd health` and keeps the tokens of
// callers.
type tokenRecorder struct {
	address string

	mu      sync.Mutex
	tokens  []string
	tenants []string
}

func startTokenRecorder(t *testing.T) *tokenRecorder {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &tokenRecorder{address: listener.Addr().String()}
	s := grpc.NewServer(grpc.UnaryInterceptor(
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			md, _ := headers.FromIncomingContext(ctx)
			r.mu.Lock()
			r.tokens = append(r.tokens, strings.TrimPrefix(strings.Join(md.Get("authorization"), ","), "Bearer "))
			r.tenants = append(r.tenants, strings.Join(md.Get("graphd-tenant"), ","))
			r.mu.Unlock()
			return handle(ctx, req)
		}))
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return r
}

// takeTokens returns the tokens of the calls since the last time.
func (r *tokenRecorder) takeTokens() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.tokens
	r.tokens = nil
	return all
}

// newContextRunner returns a runner with a folder of contexts of its own.
func newContextRunner(t *testing.T) (call commandRunner, home string) {
	t.Helper()
	home = filepath.Join(t.TempDir(), "graphd")
	return commandRunner{env: map[string]string{"GRAPHD_CONFIG_HOME": home}}, home
}

func requireDone(t *testing.T, r commandResult) commandResult {
	t.Helper()
	require.Equal(t, exit.CodeDone, r.code, r.err)
	return r
}

// Flags win over the environment, and the environment over contexts; but the token
// of a context goes to the server of that context only.
func TestTheTokenOfAContextGoesToItsServerOnly(t *testing.T) {
	a, b := startTokenRecorder(t), startTokenRecorder(t)
	setup, home := newContextRunner(t)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("of-b\n"), 0o600))
	requireDone(t, setup.runCommand(t, "context", "add", "a", "--server", a.address, "--token", "of-a", "--use"))
	requireDone(t, setup.runCommand(t, "context", "add", "b", "--server", b.address, "--token-file", token))
	type variables map[string]string
	for name, test := range map[string]struct {
		env  variables
		args []string
		on   *tokenRecorder
		want string
	}{
		"current context":                    {nil, nil, a, "of-a"},
		"flag of a context":                  {nil, []string{"--context", "b"}, b, "of-b"},
		"variable of a context":              {variables{"GRAPHD_CONTEXT": "b"}, nil, b, "of-b"},
		"flag before variable":               {variables{"GRAPHD_CONTEXT": "b"}, []string{"--context", "a"}, a, "of-a"},
		"server of a flag":                   {nil, []string{"--server", b.address}, b, ""},
		"the same server by a flag":          {nil, []string{"--server", a.address}, a, ""},
		"server of a variable":               {variables{"GRAPHD_SERVER": b.address}, nil, b, ""},
		"server and token of flags":          {nil, []string{"--server", b.address, "--token", "flag"}, b, "flag"},
		"server and token of variables":      {variables{"GRAPHD_SERVER": b.address, "GRAPHD_TOKEN": "env"}, nil, b, "env"},
		"server of a flag, context of env":   {variables{"GRAPHD_CONTEXT": "b"}, []string{"--server", a.address}, a, ""},
		"token of a flag":                    {nil, []string{"--token", "flag"}, a, "flag"},
		"token of a variable":                {variables{"GRAPHD_TOKEN": "env"}, nil, a, "env"},
		"token and context of variables":     {variables{"GRAPHD_TOKEN": "env", "GRAPHD_CONTEXT": "b"}, nil, b, "env"},
		"a context puts other servers aside": {variables{"GRAPHD_SERVER": b.address, "GRAPHD_TOKEN": "env"}, []string{"--context", "a"}, a, "of-a"},
		"token of a flag for a context":      {variables{"GRAPHD_TOKEN": "env"}, []string{"--context", "b", "--token", "flag"}, b, "flag"},
		"no context":                         {variables{"GRAPHD_SERVER": b.address, "GRAPHD_CONTEXT": "a"}, []string{"--context", ""}, b, ""},
		"variables of TLS put aside":         {variables{"GRAPHD_TLS_CA": "/none.pem", "GRAPHD_TLS": "please"}, []string{"--context", "b"}, b, "of-b"},
	} {
		t.Run(name, func(t *testing.T) {
			call := commandRunner{env: map[string]string{"GRAPHD_CONFIG_HOME": home}}
			maps.Copy(call.env, test.env)
			r := requireDone(t, call.runCommand(t, append([]string{"health", "--timeout", "1m"}, test.args...)...))
			require.Empty(t, r.err)
			other := a
			if test.on == a {
				other = b
			}
			require.Equal(t, []string{test.want}, test.on.takeTokens())
			require.Empty(t, other.takeTokens())
		})
	}
}

// A flag wins over the environment, which wins over a context; a context of a flag puts the
// environment aside.
func TestTheTenantOfCommands(t *testing.T) {
	at := startTokenRecorder(t)
	setup, home := newContextRunner(t)
	requireDone(t, setup.runCommand(t, "context", "add", "a", "--server", at.address, "--tenant", "of-a", "--use"))
	requireDone(t, setup.runCommand(t, "context", "add", "none", "--server", at.address))
	require.Regexp(t, `(?m)^tenant +of-a$`, requireDone(t, setup.runCommand(t, "context", "show", "a")).out)
	type variables map[string]string
	for name, test := range map[string]struct {
		env  variables
		args []string
		want string
	}{
		"context":                   {nil, nil, "of-a"},
		"variable":                  {variables{"GRAPHD_TENANT": "env"}, nil, "env"},
		"flag":                      {variables{"GRAPHD_TENANT": "env"}, []string{"--tenant", "flag"}, "flag"},
		"context of a flag":         {variables{"GRAPHD_TENANT": "env"}, []string{"--context", "a"}, "of-a"},
		"context without one":       {variables{"GRAPHD_TENANT": "env"}, []string{"--context", "none"}, ""},
		"another server":            {nil, []string{"--server", at.address}, ""},
		"another server, plain":     {nil, []string{"--server", at.address, "--tenant", "flag", "--tls=false"}, "flag"},
		"another server, variable":  {variables{"GRAPHD_TENANT": "env"}, []string{"--server", at.address}, "env"},
		"flag of a context's place": {nil, []string{"--context", "a", "--tenant", "flag"}, "flag"},
	} {
		t.Run(name, func(t *testing.T) {
			call := commandRunner{env: map[string]string{"GRAPHD_CONFIG_HOME": home}}
			maps.Copy(call.env, test.env)
			requireDone(t, call.runCommand(t, append([]string{"health", "--timeout", "1m"}, test.args...)...))
			at.mu.Lock()
			defer at.mu.Unlock()
			require.Equal(t, []string{test.want}, at.tenants)
			at.tenants = nil
		})
	}
	for name, args := range map[string][]string{
		"flag":    {"health", "--server", at.address, "--tenant", "a@b"},
		"context": {"context", "add", "wrong", "--server", at.address, "--tenant", "a@b"},
	} {
		r := setup.runCommand(t, args...)
		require.Equal(t, exit.CodeUsage, r.code, name)
		require.Contains(t, r.err, "--tenant", name)
		require.Contains(t, r.err, "A-Z a-z 0-9 _ . : -", name)
	}

	// A server of this process has one tenant alone, whatever the environment says.
	c := &connection{getenv: func(name string) string { return map[string]string{"GRAPHD_TENANT": "env"}[name] }}
	c.useOwnServer("127.0.0.1:7700", server.Options{})
	require.Equal(t, []string{"--tenant", "default"}, c.listFlags())
}

func TestContextsAreAddedListedAndRemoved(t *testing.T) {
	call, home := newContextRunner(t)
	require.Contains(t, requireDone(t, call.runCommand(t, "context", "list")).out, "TENANT")
	t.Chdir(t.TempDir())
	file := makeCertificates(t, "--client", "alice")
	ca, err := os.ReadFile(file("ca.pem"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("ca.pem", ca, 0o600))
	requireDone(t, call.runCommand(t, "context", "add", "prod", "--server", "graphd.example:7700", "--token", "t0-ken", "--tls-ca", "ca.pem",
		"--tls-cert", file("client-alice.pem"), "--tls-key", file("client-alice-key.pem"), "--tenant", "acme"))
	requireDone(t, call.runCommand(t, "context", "add", "dev", "--server", "localhost:7700", "--use"))
	info, err := os.Stat(filepath.Join(home, "contexts.yaml"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	r := requireDone(t, call.runCommand(t, "context", "list"))
	require.Regexp(t, `(?m)^ +prod +graphd\.example:7700 +acme +yes +yes$`, r.out)
	require.Regexp(t, `(?m)^\* +dev +localhost:7700 +- +- +-$`, r.out)
	call.env["GRAPHD_CONTEXT"] = "prod"
	r = requireDone(t, call.runCommand(t, "context", "list"))
	require.Regexp(t, `(?m)^\* +prod `, r.out)
	require.Regexp(t, `(?m)^ +dev `, r.out)
	delete(call.env, "GRAPHD_CONTEXT")
	for _, args := range [][]string{{"list"}, {"list", "-o", "json"}, {"list", "-o", "jsonl"}, {"show", "prod"}, {"show", "prod", "-o", "json"}} {
		r = requireDone(t, call.runCommand(t, append([]string{"context"}, args...)...))
		require.NotContains(t, r.out+r.err, "t0-ken")
	}
	var shown struct {
		Name, TLSCA       string
		Current, HasToken bool
	}
	require.NoError(t, json.Unmarshal([]byte(requireDone(t, call.runCommand(t, "context", "show", "prod", "-o", "json")).out), &shown))
	require.Equal(t, "prod", shown.Name)
	require.True(t, shown.HasToken && !shown.Current && filepath.IsAbs(shown.TLSCA))
	require.Contains(t, requireDone(t, call.runCommand(t, "context", "show")).out, "dev")
	require.Contains(t, requireDone(t, call.runCommand(t, "context", "show", "--context", "prod")).out, "graphd.example:7700")

	requireDone(t, call.runCommand(t, "context", "use", "prod"))
	r = requireDone(t, call.runCommand(t, "context", "remove", "prod"))
	require.Contains(t, r.err, "was the current context")
	requireDone(t, call.runCommand(t, "context", "use", "dev"))
	requireDone(t, call.runCommand(t, "context", "use", "--none"))
	r = call.runCommand(t, "context", "show")
	require.Equal(t, exit.CodeUsage, r.code)
	require.Contains(t, r.err, "commands use no context")
}

// The environment is no part of a context that is added: its token may be of another
// server.
func TestAContextHasNothingOfTheEnvironment(t *testing.T) {
	call, home := newContextRunner(t)
	call.env["GRAPHD_TOKEN"], call.env["GRAPHD_TLS_CA"], call.env["GRAPHD_SERVER"] = "t0-ken", "ca.pem", "graphd.example:1"
	r := call.runCommand(t, "context", "add", "a")
	require.Equal(t, exit.CodeUsage, r.code)
	require.Contains(t, r.err, "--server is missing")
	requireDone(t, call.runCommand(t, "context", "add", "a", "--server", "localhost:1"))
	text, err := os.ReadFile(filepath.Join(home, "contexts.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "server: localhost:1\n")
	require.NotContains(t, string(text), "t0-ken")
	require.NotContains(t, string(text), "ca.pem")
}

func TestWrongContextsOfCommandsAreRefused(t *testing.T) {
	recorder := startTokenRecorder(t)
	setup, home := newContextRunner(t)
	requireDone(t, setup.runCommand(t, "context", "add", "a", "--server", recorder.address, "--token", "t0-ken", "--use"))
	type variables map[string]string
	for name, test := range map[string]struct {
		env  variables
		args []string
		says string
	}{
		"unknown flag value":  {nil, []string{"health", "--context", "b"}, `--context "b" is no context of ` + filepath.Join(home, "contexts.yaml")},
		"unknown variable":    {variables{"GRAPHD_CONTEXT": "b"}, []string{"health"}, `GRAPHD_CONTEXT "b" is no context`},
		"context and server":  {nil, []string{"health", "--context", "a", "--server", "localhost:1"}, "--context and --server contradict"},
		"variables of both":   {variables{"GRAPHD_CONTEXT": "a", "GRAPHD_SERVER": "localhost:1"}, []string{"health"}, "GRAPHD_CONTEXT and GRAPHD_SERVER contradict"},
		"half a pair":         {nil, []string{"health", "--tls-cert", "c.pem"}, "belong together"},
		"TLS of a flag":       {nil, []string{"health", "--tls-ca", "/none.pem"}, "/none.pem: no such file"},
		"add twice":           {nil, []string{"context", "add", "a", "--server", "localhost:1"}, "exists"},
		"add a wrong name":    {nil, []string{"context", "add", "a b", "--server", "localhost:1"}, "NAME is no name"},
		"add with two tokens": {nil, []string{"context", "add", "c", "--server", "localhost:1", "--token", "t0-ken", "--token-file", "x"}, "both given"},
		"use unknown":         {nil, []string{"context", "use", "b"}, `NAME "b" is no context`},
		"use nothing":         {nil, []string{"context", "use"}, "either NAME or --none"},
		"use both":            {nil, []string{"context", "use", "a", "--none"}, "either NAME or --none"},
		"remove unknown":      {nil, []string{"context", "remove", "b"}, `NAME "b" is no context`},
		"show unknown":        {nil, []string{"context", "show", "b"}, `NAME "b" is no context`},
		"no folder":           {variables{"GRAPHD_CONFIG_HOME": ""}, []string{"context", "list"}, "folder of contexts is unknown"},
		"no folder, a flag":   {variables{"GRAPHD_CONFIG_HOME": ""}, []string{"health", "--context", "a"}, "folder of contexts is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			call := commandRunner{env: map[string]string{"GRAPHD_CONFIG_HOME": home}}
			maps.Copy(call.env, test.env)
			r := call.runCommand(t, test.args...)
			require.Equal(t, exit.CodeUsage, r.code, r.err)
			require.Contains(t, r.err, test.says)
			require.Contains(t, r.err, "hint: ")
			require.NotContains(t, r.out+r.err, "t0-ken")
			require.Empty(t, recorder.takeTokens())
		})
	}
}

func TestABrokenFileOfContextsStopsOnlyCommandsThatNeedIt(t *testing.T) {
	recorder := startTokenRecorder(t)
	call, home := newContextRunner(t)
	require.NoError(t, os.Mkdir(home, 0o700))
	path := filepath.Join(home, "contexts.yaml")
	require.NoError(t, os.WriteFile(path, []byte("contexts:\n  - nam: a\n"), 0o600))
	r := call.runCommand(t, "health")
	require.Equal(t, exit.CodeUsage, r.code)
	require.Contains(t, r.err, path+":2: nam is an unknown field")
	require.Contains(t, r.err, "--server")
	requireDone(t, call.runCommand(t, "health", "--timeout", "1m", "--server", recorder.address))
	requireDone(t, call.runCommand(t, "version"))
}

func TestFilesWithTokensThatOthersMayReadAreAWarning(t *testing.T) {
	recorder := startTokenRecorder(t)
	call, home := newContextRunner(t)
	requireDone(t, call.runCommand(t, "context", "add", "a", "--server", recorder.address, "--token", "t0-ken", "--use"))
	path := filepath.Join(home, "contexts.yaml")
	require.NoError(t, os.Chmod(path, 0o644))
	r := requireDone(t, call.runCommand(t, "health", "--timeout", "1m"))
	require.Equal(t, "warning: "+path+" has a token, and other users may read it: chmod 600 "+path+"\n", r.err)
	r = requireDone(t, call.runCommand(t, "health", "--timeout", "1m", "--token", "other"))
	require.Empty(t, r.err, "the token of the file is not used")
}

// A printed command calls the same server in the same environment, and has no token.
func TestPrintedCommandsNameTheContext(t *testing.T) {
	served := startServer(t, "memory")
	call, _ := newContextRunner(t)
	requireDone(t, call.runCommand(t, "context", "add", "a", "--server", served.server, "--token", "t0-ken"))
	r := call.runCommand(t, "run", "refund-review", "--thread", "t1", "--input", refundInput, "--context", "a", "--tenant", "default")
	require.Equal(t, exit.CodeWaiting, r.code, r.err)
	require.Contains(t, r.out+r.err, " --context a --tenant default")
	require.NotContains(t, r.out+r.err, served.server)
	require.NotContains(t, r.out+r.err, "t0-ken")
	call.env["GRAPHD_CONTEXT"] = "a"
	r = call.runCommand(t, "inbox")
	require.NotContains(t, r.out, "--context")
	requireDone(t, call.runCommand(t, "resume", "t1", "--value", `{"decision": "approved"}`))

	c := &connection{getenv: func(name string) string { return call.env[name] }}
	c.useOwnServer("127.0.0.1:7700", server.Options{})
	require.Equal(t, []string{"--server", "127.0.0.1:7700"}, c.listFlags(), "without it a context would be called")
	call.env["GRAPHD_CONTEXT"] = ""
	require.Empty(t, c.listFlags())
}

// `run --context JSON` of before is still taken, and says what is meant now.
func TestTheContextOfARunHasAFlagOfItsOwn(t *testing.T) {
	call := startServer(t, "memory")
	for thread, args := range map[string][]string{"new": {"--run-context", `{"a": 1}`}, "old": {"--context", `{"a": 1}`}} {
		r := call.runCommand(t, append([]string{"run", "refund-review", "--thread", thread, "--input", refundInput}, args...)...)
		require.Equal(t, exit.CodeWaiting, r.code, r.err)
		require.Equal(t, thread == "old", strings.Contains(r.err, "--run-context"), r.err)
	}
	r := call.runCommand(t, "run", "refund-review", "--context", `{"a": 1}`, "--run-context", `{"a": 1}`)
	require.Equal(t, exit.CodeUsage, r.code)
	require.Contains(t, r.err, "--run-context")
}

// A demo calls its own server, whatever the contexts say.
func TestADemoIgnoresContexts(t *testing.T) {
	call, _ := newContextRunner(t)
	call.env["GRAPHD_CONTEXT"] = "none"
	requireDone(t, call.runCommand(t, "demo", "--answer", `{"decision": "approved"}`))
}
