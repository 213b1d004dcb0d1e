package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/internal/testkit/built"
)

// readOptions reads the options of a server from flags, environment and file.
func readOptions(t *testing.T, args []string, env map[string]string, file string) (*server.Options, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "graphd.yaml")
		require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
		args = append(args, "--config", path)
	}
	var o server.Options
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.RegisterFlags(f)
	require.NoError(t, f.Parse(args))
	return &o, o.CompleteOptions(f, func(name string) string { return env[name] })
}

func TestFlagsWinOverTheEnvironmentOverTheFile(t *testing.T) {
	file := "listen: a:1\nstore: memory\ngraphs: [x, y]\ndrain-timeout: 3s\nlog-level: warn\n"
	env := map[string]string{"GRAPHD_LISTEN": "b:2", "GRAPHD_STORE": "sqlite:env.db"}
	o, err := readOptions(t, []string{"--listen", "c:3"}, env, file)
	require.NoError(t, err)
	require.Equal(t, "c:3", o.Listen)
	require.Equal(t, "sqlite:env.db", o.Store)
	require.Equal(t, []string{"x", "y"}, o.Graphs)
	require.Equal(t, 3*time.Second, o.DrainTimeout)
	require.Equal(t, "warn", o.LogLevel)

	o, err = readOptions(t, nil, map[string]string{"GRAPHD_GRAPHS": "p" + string(os.PathListSeparator) + "q"}, "")
	require.NoError(t, err)
	require.Equal(t, []string{"p", "q"}, o.Graphs)
	o, err = readOptions(t, nil, map[string]string{
		"GRAPHD_HTTP": "127.0.0.1:0", "GRAPHD_HTTP_ORIGIN": "https://a.example:8443, https://b.example", "GRAPHD_HTTP_HOST": "a.example,b.example",
		"GRAPHD_HTTP_SIGN_IN_SCOPES": "openid,api://graphd/groups",
	}, "")
	require.NoError(t, err)
	require.Equal(t, []string{"https://a.example:8443", "https://b.example"}, o.HTTPOrigins)
	require.Equal(t, []string{"a.example", "b.example"}, o.HTTPHosts)
	require.Equal(t, []string{"openid", "api://graphd/groups"}, o.SignInScopes)
	o, err = readOptions(t, nil, map[string]string{"GRAPHD_ENDPOINT_ALLOW": "a:443, unix:/run/x"}, "")
	require.NoError(t, err)
	require.Equal(t, []string{"a:443", "unix:/run/x"}, o.EndpointAllow)
	o, err = readOptions(t, nil, nil, "endpoint-allow: [a:443, 10.0.0.0/8:7777]\n")
	require.NoError(t, err)
	require.Equal(t, []string{"a:443", "10.0.0.0/8:7777"}, o.EndpointAllow)
	require.Equal(t, client.DefaultServer, o.Listen)
}

func TestTheFileMayComeFromTheEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("store: memory\n"), 0o600))
	o, err := readOptions(t, nil, map[string]string{"GRAPHD_CONFIG": path}, "")
	require.NoError(t, err)
	require.Equal(t, "memory", o.Store)
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		env  map[string]string
		file string
		says []string
	}{
		"unknown key":     {file: "stoer: memory\n", says: []string{"line 1", "stoer", `did you mean "store"?`}},
		"config inside":   {file: "config: other.yaml\n", says: []string{"unknown option"}},
		"no YAML":         {file: "listen: [\n", says: []string{"graphd.yaml"}},
		"a map":           {file: "listen: {host: a}\n", says: []string{"line 1", "listen", "text"}},
		"two values":      {file: "listen: [a, b]\n", says: []string{"one value"}},
		"wrong type":      {file: "drain-timeout: soon\n", says: []string{"drain-timeout", "soon"}},
		"environment":     {env: map[string]string{"GRAPHD_DRAIN_TIMEOUT": "x"}, says: []string{"GRAPHD_DRAIN_TIMEOUT"}},
		"no lease":        {file: "lease: 0s\n", says: []string{"--lease is 0s", "renew"}},
		"little lease":    {env: map[string]string{"GRAPHD_LEASE": "999ms"}, says: []string{"--lease is 999ms"}},
		"no beat":         {file: "worker-beat: 0s\n", says: []string{"--worker-beat is 0s"}},
		"short lease":     {file: "worker-lease: 15s\n", says: []string{"--worker-lease is 15s", "outlast"}},
		"no checkpoints":  {file: "checkpoints: 0\n", says: []string{`--checkpoints is "0"`}},
		"few events":      {file: "events: 999\n", says: []string{`--events is "999"`, "lose its place"}},
		"odd events":      {file: "events: many\n", says: []string{`--events is "many"`}},
		"odd checkpoints": {file: "checkpoints: some\n", says: []string{`--checkpoints is "some"`}},
		"no step":         {file: "steps-per-commit: 0\n", says: []string{"--steps-per-commit is 0"}},
		"no losses":       {file: "worker-losses: 0\n", says: []string{"--worker-losses"}},
		"no streams":      {file: "max-streams: 0\n", says: []string{"--max-streams is 0"}},
		"no stall":        {file: "stall: 0s\n", says: []string{"--stall is 0s"}},
		"narrow messages": {file: "max-message: 1000\n", says: []string{"--max-message is 1000", "--max-payload"}},
		"negative age":    {file: "connection-age: -1s\n", says: []string{"--connection-age"}},
		"odd endpoint":    {env: map[string]string{"GRAPHD_ENDPOINT_ALLOW": "a:443, 127.1"}, says: []string{"--endpoint-allow", `"127.1"`, "four decimal numbers"}},
		"no TLS key":      {file: "tls-cert: a.pem\n", says: []string{"--tls-cert needs --tls-key"}},
		"no TLS cert":     {env: map[string]string{"GRAPHD_TLS_KEY": "a.pem"}, says: []string{"--tls-key needs --tls-cert"}},
		"only client CAs": {file: "tls-client-ca: a.pem\n", says: []string{"--tls-client-ca needs --tls-cert and --tls-key"}},
		"no metrics":      {file: "profiles: true\n", says: []string{"--profiles", "--metrics"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readOptions(t, nil, test.env, test.file)
			require.Error(t, err)
			require.Equal(t, exit.CodeUsage, exit.CodeOf(err))
			for _, words := range test.says {
				require.ErrorContains(t, err, words)
			}
		})
	}
}

func TestMistypedVariablesAreTold(t *testing.T) {
	require.Equal(t, []string{
		`the variable GRAPHD_LEAES is no option: did you mean "GRAPHD_LEASE"?`,
		`the variable GRAPHD_MAX_LIVE_RUN is no option: did you mean "GRAPHD_MAX_LIVE_RUNS"?`,
	}, server.UnknownVariables([]string{
		"GRAPHD_MAX_LIVE_RUN=1", "GRAPHD_LEAES=1s", "GRAPHD_LEASE=1s", "GRAPHD_SERVER=x:1", "GRAPHD_TLS=true", "GRAPHD_TLS_CA=x",
		"GRAPHD_TOKEN=x", "GRAPHD_TENANT=x", "PATH=/", "GRAPHD=",
		"GRAPHD_PORT=tcp://10.0.0.1:7700", "GRAPHD_PORT_7700_TCP_ADDR=10.0.0.1", "GRAPHD_SERVICE_HOST=10.0.0.1",
	}))
}

// TestOurOwnVariablesAreNoMistypedOptions finds the variables that make, tools and
// tests set. Servers that they start inherit them, and must not warn of them.
// Variables for tests alone begin with TEST_.
func TestOurOwnVariablesAreNoMistypedOptions(t *testing.T) {
	name := regexp.MustCompile(`\bGRAPHD_[A-Z_]+`)
	found := map[string]bool{}
	for _, place := range []string{"Makefile", "tools", ".ci", "tests", "internal/testkit", "sdk/python/src", "sdk/python/tests", "examples", "bench"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", "..", place), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			switch filepath.Ext(path) {
			case "", ".go", ".py", ".sh", ".yaml", ".yml":
			default:
				return nil
			}
			text, err := os.ReadFile(path)
			for _, variable := range name.FindAllString(string(text), -1) {
				found[variable] = true
			}
			return err
		}))
	}
	require.True(t, found["GRAPHD_BIN"])
	require.Empty(t, server.UnknownVariables(slices.Collect(maps.Keys(found))))
}

// A file in place of a folder, or the other way round, is refused with a hint. So
// is a folder without graphs.
func TestFilesAndFolders(t *testing.T) {
	dir := t.TempDir()
	for _, verb := range []string{"check", "put"} {
		r := commandRunner{}.runCommand(t, "graph", verb, dir)
		require.Equal(t, exit.CodeUsage, r.code)
		require.Contains(t, r.err, "is a folder\nhint: name the files in it")
	}
	file := filepath.Join(dir, "counting.yaml")
	require.NoError(t, os.WriteFile(file, []byte(countingGraph), 0o600))
	core, logs := observer.New(zap.WarnLevel)
	_, err := server.NewServer(t.Context(), server.Options{Listen: "127.0.0.1:0", Store: "memory", Graphs: []string{file}}, zap.New(core), "test")
	require.ErrorContains(t, err, "is a file")
	require.Equal(t, exit.CodeUsage, exit.CodeOf(err))
	s, err := server.NewServer(t.Context(), server.Options{Listen: "127.0.0.1:0", Store: "memory", Graphs: []string{t.TempDir()}}, zap.New(core), "test")
	require.NoError(t, err)
	s.StartServing()
	require.Len(t, logs.FilterMessage("the folder has no graph files").All(), 1)
	require.NoError(t, s.DrainServer(t.Context()))
}

func TestSecretsAreMasked(t *testing.T) {
	for _, store := range []string{"redis://user:sesame@host:6379", "redis://:#sesame@host:6379", "redis://:%sesame@host"} {
		o := &server.Options{Store: store, WorkerKey: "sesame"}
		for _, f := range o.LogFields() {
			require.NotContains(t, f.String, "sesame")
		}
	}
}

func TestDevTakesUpChangedFiles(t *testing.T) {
	path := built.Graphd(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "counting.yaml")
	require.NoError(t, os.WriteFile(file, []byte("graph: broken\nnodes: {}\n"), 0o600))
	log := newLockedBuffer()
	dev := newCommandIn(dir, path, "dev", "--listen", "127.0.0.1:0")
	dev.Stderr = log
	require.NoError(t, dev.Start())
	address := log.waitForMatch(t, regexp.MustCompile(`graph list --server (\S+)`))
	require.Contains(t, log.String(), "graph files are wrong")
	require.NoError(t, os.WriteFile(file, []byte(countingGraph), 0o600))
	log.waitForMatch(t, regexp.MustCompile(`graph loaded.*counting`))
	r := commandRunner{server: address}.runCommand(t, "graph", "list")
	require.Contains(t, r.out, "counting")
	require.NoError(t, dev.Process.Signal(os.Interrupt))
	require.NoError(t, dev.Wait())
	require.FileExists(t, filepath.Join(dir, ".graphd", "dev.db"))
}

func TestServeUntilInputEnds(t *testing.T) {
	path := built.Graphd(t)
	log := newLockedBuffer()
	serve := newCommandIn(t.TempDir(), path, "serve", "--listen", "127.0.0.1:0", "--store", "memory", "--until-input-ends")
	serve.Stderr = log
	input, err := serve.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, serve.Start())
	log.waitForMatch(t, regexp.MustCompile(`serving`))
	require.NoError(t, input.Close())
	require.NoError(t, serve.Wait())
	require.Contains(t, log.String(), "stopped")
}

func TestCheckpointsKept(t *testing.T) {
	for _, tc := range []struct {
		store, option string
		want          uint64
	}{
		{"memory", "", 0},
		{"sqlite:x.db", "", 0},
		{"redis://localhost:1/0", "", 64},
		{"memory", "5", 5},
		{"redis://localhost:1/0", "all", 0},
		{"redis://localhost:1/0", "100", 100},
	} {
		name, err := server.ParseStore(tc.store)
		require.NoError(t, err)
		o := server.Options{Checkpoints: tc.option}
		require.Equal(t, tc.want, o.CheckpointLimit(name), tc)
	}
}

func TestEventsKept(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "counting.yaml"), []byte(countingGraph), 0o600))
	o := server.Options{Listen: "127.0.0.1:0", Store: "memory", Graphs: []string{dir}, Events: "1000"}
	s, err := server.NewServer(t.Context(), o, zap.NewNop(), "test")
	require.NoError(t, err)
	s.StartServing()
	defer func() { require.NoError(t, s.DrainServer(t.Context())) }()
	r := commandRunner{server: s.Address()}.runCommand(t, "run", "counting", "-t", "c", "-i", `{"n": 0}`, "--step-limit", "2000", "--detach")
	require.Equal(t, 0, r.code, r.err)
	_, err = s.Engine.WaitRun(t.Context(), "c", "")
	require.NoError(t, err)
	head, err := s.Engine.Thread(t.Context(), "c")
	require.NoError(t, err)
	kept := head.LastEvent + 1 - head.FirstEvent
	require.Greater(t, head.LastEvent, uint64(5000))
	require.GreaterOrEqual(t, kept, uint64(1000))
	require.LessOrEqual(t, kept, uint64(1250))
	r = commandRunner{server: s.Address()}.runCommand(t, "watch", "c", "--from", head.LogID+":1")
	require.Contains(t, r.err, "CURSOR_TRIMMED")
	require.Zero(t, (&server.Options{Events: server.KeepAll}).EventLimit())
}
