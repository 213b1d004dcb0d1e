package links_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/internal/testkit/built"
)

// The rates of callers hold for links: for each person alone.
func TestRatesHoldForLinks(t *testing.T) {
	f, flags := newFiles(t, keyLine("k1", 1))
	quotas := filepath.Join(f.dir, "quotas.yaml")
	require.NoError(t, os.WriteFile(quotas, []byte("overrides:\n- principals: [carol]\n  caller: {answers: {per_second: 0.001, burst: 1}}\n"), 0o600))
	f.serve(t, append(flags, "--store", "memory", "--quotas", quotas)...)
	q := f.ask(t, "ana", "free", "order-7")
	carol, dora := f.link(t, "mail", q, linkFor("carol")), f.link(t, "mail", q, linkFor("dora"))
	require.Equal(t, http.StatusUnprocessableEntity, post(t, carol, "v.0", "0", "v.1", "0").code, "the schema is checked, and it counts")
	limited := post(t, carol, "v.0", "0")
	require.Equal(t, http.StatusTooManyRequests, limited.code, limited.body)
	require.NotEmpty(t, limited.header.Get("Retry-After"))
	require.Equal(t, openState, f.read(t, q).GetState())
	require.Equal(t, http.StatusSeeOther, post(t, dora, "v.0", "0").code)
}

// Browsers reach the pages over TLS without a certificate of theirs, also where clients of gRPC
// need one.
func TestPagesAreServedOverTLS(t *testing.T) {
	f, flags := newFiles(t, keyLine("k1", 1))
	certs := filepath.Join(f.dir, "certs")
	out, err := exec.CommandContext(t.Context(), built.Graphd(t), "certs", "--dir", certs).CombinedOutput()
	require.NoError(t, err, "%s", out)
	flags = append(flags, "--listen", "127.0.0.1:0", "--store", "memory", "--tls-cert", filepath.Join(certs, "server.pem"),
		"--tls-key", filepath.Join(certs, "server-key.pem"), "--tls-client-ca", filepath.Join(certs, "ca.pem"))
	var o server.Options
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.RegisterFlags(set)
	require.NoError(t, set.Parse(flags))
	require.NoError(t, o.CompleteOptions(set, func(string) string { return "" }))
	s, err := server.NewServer(t.Context(), o, zap.NewNop(), "test")
	require.NoError(t, err)
	s.StartServing()
	t.Cleanup(func() { require.NoError(t, s.DrainServer(context.WithoutCancel(t.Context()))) })
	require.Contains(t, s.LinksURL(), "https://127.0.0.1:")
	ca, err := os.ReadFile(filepath.Join(certs, "ca.pem"))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(ca))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.LinksURL()+"/a/x", http.NoBody)
	require.NoError(t, err)
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	require.Equal(t, 1, resp.ProtoMajor)
}
