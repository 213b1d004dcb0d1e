package certs_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/certs"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

var present = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

func newRequest(t *testing.T) certs.Request {
	t.Helper()
	return certs.Request{Dir: filepath.Join(t.TempDir(), "made"), Days: 90, Now: present}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestCertificatesAreWhatServersAndClientsNeed(t *testing.T) {
	r := newRequest(t)
	r.Hosts, r.Clients = []string{"10.0.0.5", "graphd.internal", "localhost"}, []string{"alice", "bob", "alice"}
	made, err := certs.WriteCertificates(r)
	require.NoError(t, err)
	require.Empty(t, made.Kept)
	var names []string
	for _, path := range made.Written {
		names = append(names, filepath.Base(path))
		info, err := os.Stat(path)
		require.NoError(t, err)
		if strings.HasSuffix(path, "-key.pem") {
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), path)
		}
	}
	require.Equal(t, []string{
		"ca-key.pem", "ca.pem", "server-key.pem", "server.pem",
		"client-alice-key.pem", "client-alice.pem", "client-bob-key.pem", "client-bob.pem",
	}, names)

	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM([]byte(readFile(t, made.CA))))
	pair, err := tls.LoadX509KeyPair(made.Server.Cert, made.Server.Key)
	require.NoError(t, err)
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "10.0.0.5", "graphd.internal"} {
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: present.AddDate(0, 0, 89)})
		require.NoError(t, err, host)
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: present.AddDate(0, 0, 91)})
	require.ErrorContains(t, err, "expired")
	client, err := tls.LoadX509KeyPair(made.Client.Cert, made.Client.Key)
	require.NoError(t, err)
	require.Equal(t, "alice", client.Leaf.Subject.CommonName)
	for usage, fits := range map[x509.ExtKeyUsage]bool{x509.ExtKeyUsageClientAuth: true, x509.ExtKeyUsageServerAuth: false} {
		_, err = client.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: present, KeyUsages: []x509.ExtKeyUsage{usage}})
		require.Equal(t, fits, err == nil)
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: present, KeyUsages: []x509.ExtKeyUsage{usage}})
		require.Equal(t, !fits, err == nil)
	}
}

func TestACAIsUsedAgainAndNoKeyIsReplaced(t *testing.T) {
	r := newRequest(t)
	first, err := certs.WriteCertificates(r)
	require.NoError(t, err)
	ca, server := readFile(t, first.CA), readFile(t, first.Server.Key)

	r.Clients = []string{"alice"}
	second, err := certs.WriteCertificates(r)
	require.NoError(t, err)
	require.Len(t, second.Kept, 4, "the CA and the server's certificate")
	require.Len(t, second.Written, 2)
	alice := readFile(t, second.Client.Key)

	for _, refused := range []certs.Request{
		{Clients: []string{"bob", "alice"}}, {Hosts: []string{"graphd.internal"}, Clients: []string{"bob"}},
	} {
		refused.Dir, refused.Days, refused.Now = r.Dir, r.Days, r.Now
		_, err = certs.WriteCertificates(refused)
		var usage *exit.UsageError
		require.ErrorAs(t, err, &usage)
		require.Contains(t, usage.Message, "-key.pem exists")
		require.Contains(t, usage.Hint, "--force")
		require.NoFileExists(t, filepath.Join(r.Dir, "client-bob.pem"), "nothing is written")
	}
	require.Equal(t, server, readFile(t, first.Server.Key))
	require.Equal(t, alice, readFile(t, second.Client.Key))

	r.Hosts, r.Force = []string{"graphd.internal"}, true
	_, err = certs.WriteCertificates(r)
	require.NoError(t, err)
	require.Equal(t, ca, readFile(t, first.CA))
	require.NotEqual(t, server, readFile(t, first.Server.Key))
	require.NotEqual(t, alice, readFile(t, second.Client.Key))
}

func TestWrongRequestsAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		request certs.Request
		says    string
	}{
		"no days":           {certs.Request{}, "--valid is 0"},
		"many days":         {certs.Request{Days: 1826}, "--valid is 1826"},
		"port":              {certs.Request{Days: 1, Hosts: []string{"localhost:7700"}}, `--host "localhost:7700"`},
		"empty host":        {certs.Request{Days: 1, Hosts: []string{""}}, `--host ""`},
		"path as client":    {certs.Request{Days: 1, Clients: []string{"../alice"}}, `--client "../alice"`},
		"key of a client":   {certs.Request{Days: 1, Clients: []string{"alice-key"}}, `--client "alice-key"`},
		"empty client name": {certs.Request{Days: 1, Clients: []string{""}}, `--client ""`},
	} {
		t.Run(name, func(t *testing.T) {
			test.request.Dir, test.request.Now = filepath.Join(t.TempDir(), "made"), present
			_, err := certs.WriteCertificates(test.request)
			var usage *exit.UsageError
			require.ErrorAs(t, err, &usage)
			require.Contains(t, usage.Message, test.says)
			require.NotEmpty(t, usage.Hint)
			require.NoDirExists(t, test.request.Dir)
		})
	}
}

func TestAnUnusableCAIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(t *testing.T, made certs.Result, r *certs.Request)
		says  string
	}{
		"no key": {func(t *testing.T, made certs.Result, _ *certs.Request) {
			require.NoError(t, os.Remove(filepath.Join(filepath.Dir(made.CA), "ca-key.pem")))
		}, "ca-key.pem: no such file"},
		"no certificate": {func(t *testing.T, made certs.Result, _ *certs.Request) {
			require.NoError(t, os.WriteFile(made.CA, []byte("x"), 0o600))
		}, "ca.pem: the file is not PEM"},
		"no CA": {func(t *testing.T, made certs.Result, _ *certs.Request) {
			require.NoError(t, os.Rename(made.Server.Cert, made.CA))
			require.NoError(t, os.Rename(made.Server.Key, filepath.Join(filepath.Dir(made.CA), "ca-key.pem")))
		}, "is not the certificate of a CA"},
		"old CA": {func(_ *testing.T, _ certs.Result, r *certs.Request) { r.Now = r.Now.AddDate(0, 0, 3600) }, "is valid until 2036-05-03"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRequest(t)
			made, err := certs.WriteCertificates(r)
			require.NoError(t, err)
			test.spoil(t, made, &r)
			r.Clients = []string{"alice"}
			_, err = certs.WriteCertificates(r)
			var usage *exit.UsageError
			require.ErrorAs(t, err, &usage)
			require.Contains(t, usage.Message, test.says)
			require.NotEmpty(t, usage.Hint)
			require.NoFileExists(t, filepath.Join(r.Dir, "client-alice.pem"))
		})
	}
}
