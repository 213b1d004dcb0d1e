package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/server"
)

func TestOptionsOfTheAudit(t *testing.T) {
	o, err := readOptions(t, nil, map[string]string{"GRAPHD_AUDIT": "file:/var/log/a.jsonl, stdout"}, "")
	require.NoError(t, err)
	require.Equal(t, []string{"file:/var/log/a.jsonl", "stdout"}, o.Audit)
	require.True(t, o.AuditReads)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--audit", "syslog"}, "no place for records"},
		{[]string{"--audit", "file:"}, "no place for records"},
		{[]string{"--audit", "stdout", "--audit", "stdout"}, "given twice"},
		{[]string{"--audit", "otlp:"}, "no address of a collector"},
		{[]string{"--audit", "otlp:ftp://h:1"}, "no address of a collector"},
		{[]string{"--audit", "otlp:https://u:sesame@h:1"}, "has credentials or parameters"},
		{[]string{"--audit", "otlp:https://h:1/v1/logs?key=sesame"}, "has credentials or parameters"},
		{[]string{"--audit", "otlp:https://u:sesame@h:port"}, "can't be read"},
		{[]string{"--audit-queue-bytes", "1"}, "--audit-queue-bytes is 1"},
		{[]string{"--audit-file-bytes", "0"}, "--audit-file-bytes is 0"},
		{[]string{"--audit-files", "0"}, "--audit-files is 0"},
		{[]string{"--audit-sync", "-1s"}, "--audit-sync is -1s"},
	} {
		_, err := readOptions(t, c.args, nil, "")
		require.ErrorContains(t, err, c.says)
		require.NotContains(t, err.Error(), "sesame")
	}
}

// A collector gets the records of a server over TLS, with the headers of the environment. A
// collector that is away holds up neither the start nor calls nor the end.
func TestServeSendsRecordsToACollector(t *testing.T) {
	file := makeCertificates(t, "--client", "graphd")
	var mu sync.Mutex
	var all strings.Builder
	collector := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		all.WriteString(r.Header.Get("Authorization") + " " + r.TLS.PeerCertificates[0].Subject.CommonName + " " + string(body))
	}))
	own, err := tls.LoadX509KeyPair(file("server.pem"), file("server-key.pem"))
	require.NoError(t, err)
	ca, err := os.ReadFile(file("ca.pem"))
	require.NoError(t, err)
	clients := x509.NewCertPool()
	require.True(t, clients.AppendCertsFromPEM(ca))
	collector.TLS = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	collector.StartTLS()
	defer collector.Close()
	env := map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20sesame", "OTEL_EXPORTER_OTLP_CERTIFICATE": file("ca.pem"),
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": file("client-graphd.pem"), "OTEL_EXPORTER_OTLP_CLIENT_KEY": file("client-graphd-key.pem"),
	}
	for name, value := range env {
		t.Setenv(name, value) // for the SDK
	}
	t.Run("serve", func(t *testing.T) {
		c := startServerWith(t, server.Options{Store: "memory", AuditOptions: server.AuditOptions{
			Audit: []string{"otlp:" + collector.URL, "otlp:https://127.0.0.1:1"}, AuditReads: true,
			Getenv: func(name string) string { return env[name] },
		}})
		require.Zero(t, c.runCommand(t, "threads", "list").code)
	})
	mu.Lock()
	defer mu.Unlock()
	require.Contains(t, all.String(), "Bearer sesame graphd ")
	require.Contains(t, all.String(), `"method":"graphd.v1.ThreadService/ListThreads","outcome":"ok"`)
	require.Contains(t, all.String(), `"kind":"stop"`)
	for variable, says := range map[string]string{"CERTIFICATE": "names /none.pem: no such file", "CLIENT_KEY": "belong together"} {
		t.Run(variable, func(t *testing.T) {
			other := maps.Clone(env)
			other["OTEL_EXPORTER_OTLP_"+variable] = map[string]string{"CERTIFICATE": "/none.pem"}[variable]
			r := commandRunner{env: other}.runCommand(t, "serve", "--store", "memory", "--listen", "127.0.0.1:0", "--audit", "otlp:https://h:1")
			require.Equal(t, 2, r.code)
			require.Contains(t, r.err, says)
		})
	}
	r := commandRunner{env: env}.runCommand(t, "serve", "--store", "memory", "--listen", "127.0.0.1:0", "--audit", "otlp:http://collector.example:4318")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "in plain text to another host")
}

// startAuditedServer starts a server that records calls in a file.
func startAuditedServer(t *testing.T, path string) commandRunner {
	t.Helper()
	return startServerWith(t, server.Options{Store: "memory", Graphs: []string{examplesDir}, AuditOptions: server.AuditOptions{
		Audit: []string{"file:" + path}, AuditReads: true,
	}})
}

func TestServeRecordsCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	t.Run("serve", func(t *testing.T) {
		c := startAuditedServer(t, path)
		require.Zero(t, c.runCommand(t, "threads", "list").code)
		require.NotZero(t, c.runCommand(t, "threads", "delete", "missing").code)
	})
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Contains(t, lines[0], `"kind":"start"`)
	require.Contains(t, string(text), `"method":"graphd.v1.ThreadService/ListThreads","outcome":"ok"`)
	require.Contains(t, string(text), `"outcome":"failed","code":"NOT_FOUND","reason":"THREAD_NOT_FOUND","thread":"missing"`)
	require.Contains(t, lines[len(lines)-1], `"kind":"stop"`)
}

func TestServeRefusesAFileThatIsNoAudit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	require.NoError(t, os.WriteFile(path, []byte("hello\n"), 0o600))
	r := commandRunner{}.runCommand(t, "serve", "--store", "memory", "--listen", "127.0.0.1:0", "--audit", "file:"+path)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "no record of the audit")
}

// A selection that can select nothing is refused, and not shown as an empty audit.
func TestAuditRefusesMethodsThatThereAreNot(t *testing.T) {
	r := commandRunner{}.runCommand(t, "audit", filepath.Join(t.TempDir(), "audit.jsonl"), "--method", "resumerun")
	require.Equal(t, exit.CodeUsage, r.code)
	require.Contains(t, r.err, `--method "resumerun" is no method of graphd; did you mean "ResumeRun"?`)
}
