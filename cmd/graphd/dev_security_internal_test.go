package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/testkit/built"
)

// startDev starts `graphd dev` in a folder, and returns its address, what it has printed,
// and a function that ends it.
func startDev(t *testing.T, dir string, args ...string) (address string, log *lockedBuffer, end func()) {
	t.Helper()
	log = newLockedBuffer()
	dev := newCommandIn(dir, built.Graphd(t), append([]string{"dev", "--graphs", dir}, args...)...)
	dev.Stderr = log
	require.NoError(t, dev.Start())
	address = log.waitForMatch(t, regexp.MustCompile(`graph list --server (\S+)`))
	return address, log, func() {
		require.NoError(t, dev.Process.Signal(os.Interrupt))
		require.NoError(t, dev.Wait())
	}
}

// A server of `dev` that other machines may reach has TLS, and a token that it prints.
func TestDevForOtherMachinesIsSecure(t *testing.T) {
	dir := t.TempDir()
	var tokens, authorities []string
	for range 2 { // the second start keeps what the first has made
		address, log, end := startDev(t, dir, "--listen", "0.0.0.0:0")
		token := log.waitForMatch(t, regexp.MustCompile(`(?m)^  export GRAPHD_TOKEN=(gk_\S+)$`))
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		others := log.waitForMatch(t, regexp.MustCompile(`(?m)^Other machines need a copy of \.graphd/certs/ca\.pem, and call --server (.+)\.$`))
		for other := range strings.SplitSeq(others, " or ") {
			require.True(t, strings.HasSuffix(other, ":"+port), others)
		}
		ca := filepath.Join(dir, log.waitForMatch(t, regexp.MustCompile(`--tls-ca (\S+)`)))
		authority, err := os.ReadFile(ca)
		require.NoError(t, err)
		tokens, authorities = append(tokens, token), append(authorities, string(authority))

		call := commandRunner{server: address, env: map[string]string{"GRAPHD_TLS_CA": ca}}
		r := call.runCommand(t, "graph", "list")
		require.Equal(t, exit.CodeError, r.code)
		require.Contains(t, r.err, "NO_CREDENTIALS")
		call.env["GRAPHD_TOKEN"] = token
		require.Equal(t, exit.CodeDone, call.runCommand(t, "graph", "list").code)

		page := log.waitForMatch(t, regexp.MustCompile(`(?m)^the page: (https://127\.0\.0\.1:\d+/)#t=`+token+`$`))
		browser := newBrowser(t, authority)
		require.Contains(t, browser.readPage(t, page), `<script type="module"`)
		status, answer := browser.callMethod(t, page, "RegistryService/ListGraphs", `{}`)
		require.Equal(t, http.StatusUnauthorized, status, answer)
		browser.token = token
		status, answer = browser.callMethod(t, page, "RegistryService/ListGraphs", `{}`)
		require.Equal(t, http.StatusOK, status, answer)
		require.Contains(t, log.String(), "import .graphd/certs/ca.pem")
		end()
	}
	require.Equal(t, tokens[0], tokens[1])
	require.Equal(t, authorities[0], authorities[1])
	info, err := os.Stat(filepath.Join(dir, ".graphd", "token"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.NoError(t, os.Remove(filepath.Join(dir, ".graphd", "keys.yaml")))
	_, log, end := startDev(t, dir, "--listen", "0.0.0.0:0")
	require.NotEqual(t, tokens[0], log.waitForMatch(t, regexp.MustCompile(`export GRAPHD_TOKEN=(gk_\S+)`)), "its key is gone")
	end()
}

// On loopback, with --insecure and with options of its own, `dev` makes no token.
func TestDevKeepsToItsOptions(t *testing.T) {
	for name, args := range map[string][]string{
		"this machine": {"--listen", "127.0.0.1:0"},
		"insecure":     {"--listen", "0.0.0.0:0", "--insecure"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			address, log, end := startDev(t, dir, args...)
			require.Equal(t, exit.CodeDone, commandRunner{server: address}.runCommand(t, "graph", "list").code)
			end()
			require.NotContains(t, log.String(), "GRAPHD_TOKEN")
			require.Regexp(t, `(?m)^the page: http://127\.0\.0\.1:\d+/$`, log.String())
			require.NoFileExists(t, filepath.Join(dir, ".graphd", "keys.yaml"))
		})
	}
	file := makeCertificates(t)
	dir := t.TempDir()
	address, log, end := startDev(t, dir, "--listen", "0.0.0.0:0", "--tls-cert", file("server.pem"), "--tls-key", file("server-key.pem"))
	token := log.waitForMatch(t, regexp.MustCompile(`export GRAPHD_TOKEN=(gk_\S+)`))
	call := commandRunner{server: address, env: map[string]string{"GRAPHD_TLS_CA": file("ca.pem"), "GRAPHD_TOKEN": token}}
	require.Equal(t, exit.CodeDone, call.runCommand(t, "graph", "list").code)
	end()
	require.NoDirExists(t, filepath.Join(dir, ".graphd", "certs"))
}
