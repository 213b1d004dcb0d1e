package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/internal/testkit/process"
)

// Steps of the walk of docs/security.md, from 0.
const (
	walkStartServer = 4
	walkStartWorker = 5
	walkStartRun    = 7
	walkAnswer      = 8
	walkOtherTenant = 9
)

// The walk of docs/security.md is done as it stands there. In between other callers try
// what they may not do.
func TestTheSecurityWalk(t *testing.T) {
	steps := readWalk(t)
	require.Len(t, steps, 10)
	issuer := startOIDCIssuer(t)
	forger := &oidcIssuer{server: issuer.server, key: startOIDCIssuer(t).key}
	shell := startWalkShell(t, map[string]string{
		"ISSUER": issuer.server.URL,
		"ANA":    issuer.signToken(t, "ana@acme.example", "acme", "support"),
		"OLU":    issuer.signToken(t, "olu@acme.example", "acme", "officers"),
		"GIL":    issuer.signToken(t, "gil@globex.example", "globex", "support", "officers"),
		"FORGED": forger.signToken(t, "olu@acme.example", "acme", "officers"),
	})
	for i, step := range steps {
		out, code := shell.runCommand(step)
		switch i {
		case walkStartServer:
			shell.waitForText("server.log", "serving")
		case walkStartWorker:
			shell.waitForText("worker-acme.log", "working on refund-review-python")
		case walkStartRun:
			require.Equal(t, exit.CodeWaiting, code, out)
			require.Contains(t, out, "human_review asks")
			tryWhatIsNotPermitted(t, shell)
		case walkAnswer:
			require.Equal(t, exit.CodeDone, code, out)
			require.Contains(t, out, "Your refund has been approved")
		case walkOtherTenant:
			require.Equal(t, exit.CodeError, code, out)
			require.Contains(t, out, "THREAD_NOT_FOUND")
			continue
		default:
			require.Equal(t, exit.CodeDone, code, out)
		}
	}
	out, code := shell.runCommand("bin/graphd audit audit.jsonl --principal olu@acme.example --tenant acme --thread order-1 -o jsonl")
	require.Equal(t, exit.CodeDone, code, out)
	require.Regexp(t, `"method":"graphd.v1.GraphService/Resume(Run)?","outcome":"ok"`, out)
	giveTheOtherTenantTheSameThread(t, shell, steps)
}

// tryWhatIsNotPermitted calls while ana's run of acme waits for an officer.
func tryWhatIsNotPermitted(t *testing.T, shell *walkShell) {
	t.Helper()
	answer := ` bin/graphd resume order-1 --value '{"decision": "approved"}'`
	worker := "GRAPHD_TLS_CERT=certs/client-worker-globex.pem GRAPHD_TLS_KEY=certs/client-worker-globex-key.pem"
	for name, test := range map[string]struct {
		command string
		code    int
		says    string
	}{
		"who only starts answers":      {"GRAPHD_TOKEN=$ANA" + answer, exit.CodeError, "ACCESS_DENIED"},
		"who only answers starts":      {"GRAPHD_TOKEN=$OLU bin/graphd run refund-review-python -i '{}'", exit.CodeError, "GRAPH_NOT_FOUND"},
		"another tenant answers":       {"GRAPHD_TOKEN=$GIL" + answer, exit.CodeError, "THREAD_NOT_FOUND"},
		"another tenant deletes":       {"GRAPHD_TOKEN=$GIL bin/graphd threads delete order-1 --force", exit.CodeError, "THREAD_NOT_FOUND"},
		"another tenant runs":          {"GRAPHD_TOKEN=$GIL bin/graphd run refund-review-python -i '{}'", exit.CodeError, "GRAPH_NOT_FOUND"},
		"no token":                     {answer, exit.CodeError, "CERTIFICATE_UNMAPPED"},
		"a forged token":               {"GRAPHD_TOKEN=$FORGED" + answer, exit.CodeError, "TOKEN_SIGNATURE"},
		"no certificate":               {"env -u GRAPHD_TLS_CERT -u GRAPHD_TLS_KEY GRAPHD_TOKEN=$OLU" + answer, exit.CodeError, "--tls-cert"},
		"a worker's certificate":       {worker + " GRAPHD_TOKEN=$OLU" + answer, exit.CodeError, "THREAD_NOT_FOUND"},
		"a worker of another tenant":   {worker + answer, exit.CodeError, "THREAD_NOT_FOUND"},
		"plain text":                   {"env -u GRAPHD_TLS_CA -u GRAPHD_TLS_CERT -u GRAPHD_TLS_KEY" + answer, exit.CodeError, "--tls-ca"},
		"the inbox of another tenant":  {"GRAPHD_TOKEN=$GIL bin/graphd inbox -o json", exit.CodeDone, ""},
		"the graphs of another tenant": {"GRAPHD_TOKEN=$GIL bin/graphd graph list -o json", exit.CodeDone, ""},
	} {
		out, code := shell.runCommand(strings.TrimSpace(test.command))
		require.Equal(t, test.code, code, "%s: %s", name, out)
		require.Contains(t, out, test.says, name)
		if test.code == exit.CodeDone {
			require.NotContains(t, out, "order-1", name)
			require.NotContains(t, out, "refund", name)
		}
	}
	out, _ := shell.runCommand("GRAPHD_TOKEN=$OLU bin/graphd inbox")
	require.Contains(t, out, "order-1", "the question is still there for those who may answer")
}

// giveTheOtherTenantTheSameThread does the walk's steps for globex: its thread has the id
// of acme's, and nothing else of it.
func giveTheOtherTenantTheSameThread(t *testing.T, shell *walkShell, steps []string) {
	t.Helper()
	before, code := shell.runCommand("GRAPHD_TOKEN=$ANA bin/graphd history order-1")
	require.Equal(t, exit.CodeDone, code, before)
	out, code := shell.runCommand(strings.ReplaceAll(steps[walkStartWorker], "acme", "globex"))
	require.Equal(t, exit.CodeDone, code, out)
	shell.waitForText("worker-globex.log", "working on refund-review-python")
	out, code = shell.runCommand(strings.ReplaceAll(steps[walkStartRun], "$ANA", "$GIL"))
	require.Equal(t, exit.CodeWaiting, code, out)
	out, _ = shell.runCommand("GRAPHD_TOKEN=$OLU bin/graphd inbox")
	require.NotContains(t, out, "order-1")
	out, code = shell.runCommand(strings.NewReplacer("$OLU", "$GIL", "approved", "rejected").Replace(steps[walkAnswer]))
	require.Equal(t, exit.CodeDone, code, out)
	require.Contains(t, out, "your refund was declined")
	after, _ := shell.runCommand("GRAPHD_TOKEN=$ANA bin/graphd history order-1")
	require.Equal(t, before, after)
	out, code = shell.runCommand("bin/graphd audit audit.jsonl --check")
	require.Equal(t, exit.CodeDone, code, out)
}

// readWalk returns the commands of the walk, each a block of the page.
func readWalk(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(repository, "docs", "security.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## From nothing to two tenants, in ten commands\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var steps []string
	for _, m := range regexp.MustCompile("(?s)\n```sh\n(.*?)```\n").FindAllStringSubmatch(section, -1) {
		steps = append(steps, m[1])
	}
	return steps
}

// walkShell is a shell at a prompt in a folder that looks like a checkout in which the
// README was followed.
type walkShell struct {
	t   *testing.T
	dir string
	in  io.Writer
	out *bufio.Reader
}

func startWalkShell(t *testing.T, env map[string]string) *walkShell {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs(repository)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(filepath.Join(root, "examples"), filepath.Join(dir, "examples")))
	for path, program := range map[string]string{"bin/graphd": built.Graphd(t), ".cache/try/bin/python": process.Python(t)} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700))
		script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\"\n", program)
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(script), 0o700))
	}
	address := process.FreeAddress(t)
	cmd := newCommandIn(dir, "bash")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "PYTHONPATH=" + os.Getenv("PYTHONPATH"),
		"HOME=" + dir, "GRAPHD_LISTEN=" + address, "GRAPHD_SERVER=" + address,
	}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, writer, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = writer, writer
	require.NoError(t, cmd.Start())
	require.NoError(t, writer.Close())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with what runs in the background
		_ = cmd.Wait()
		_ = out.Close()
	})
	require.NoError(t, out.SetReadDeadline(time.Now().Add(10*time.Minute)))
	return &walkShell{t: t, dir: dir, in: in, out: bufio.NewReader(out)}
}

// runCommand returns what a command prints, and its exit code.
func (s *walkShell) runCommand(command string) (output string, code int) {
	s.t.Helper()
	const mark = "--- the command has ended with "
	_, err := fmt.Fprintf(s.in, "%s\necho \"%s$?\"\n", strings.TrimSpace(command), mark)
	require.NoError(s.t, err)
	for {
		line, err := s.out.ReadString('\n')
		require.NoError(s.t, err, "%s\n%s", command, output)
		text, end, isEnd := strings.Cut(line, mark)
		output += text
		if isEnd {
			_, err := fmt.Sscan(end, &code)
			require.NoError(s.t, err)
			return output, code
		}
	}
}

// waitForText waits until a program that runs in the background has said something.
func (s *walkShell) waitForText(file, text string) {
	s.t.Helper()
	log := func() string {
		said, err := os.ReadFile(filepath.Join(s.dir, file))
		if !errors.Is(err, os.ErrNotExist) { // the shell has not made it yet
			require.NoError(s.t, err)
		}
		return string(said)
	}
	limit, look := time.NewTimer(time.Minute), time.NewTicker(5*time.Millisecond)
	defer limit.Stop()
	defer look.Stop()
	for !strings.Contains(log(), text) {
		select {
		case <-look.C:
		case <-limit.C:
			require.Contains(s.t, log(), text, file)
		}
	}
}

// oidcIssuer is an OpenID Connect provider: discovery, and the keys of its tokens.
type oidcIssuer struct {
	server *httptest.Server
	key    *ecdsa.PrivateKey
}

func startOIDCIssuer(t *testing.T) *oidcIssuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	i := &oidcIssuer{key: key}
	answer := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]string{"issuer": i.server.URL, "jwks_uri": i.server.URL + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k1"}}})
	})
	i.server = httptest.NewServer(mux)
	t.Cleanup(i.server.Close)
	return i
}

// signToken makes the token of a person.
func (i *oidcIssuer) signToken(t *testing.T, email, tenant string, groups ...string) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{
		"iss": i.server.URL, "aud": "graphd", "sub": email, "email": email, "tenant": tenant, "groups": groups,
		"exp": time.Now().Add(time.Hour).Unix(),
	})
	require.NoError(t, err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.key}, (&jose.SignerOptions{}).WithHeader("kid", "k1"))
	require.NoError(t, err)
	signed, err := signer.Sign(claims)
	require.NoError(t, err)
	token, err := signed.CompactSerialize()
	require.NoError(t, err)
	return token
}
