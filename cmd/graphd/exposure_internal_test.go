package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/internal/server"
)

// A server that other machines reach needs TLS and callers, or --insecure.
func TestServersForOthersAreSecure(t *testing.T) {
	file := makeCertificates(t)
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	_, _, err := apikey.Create(t.Context(), keys, apikey.Key{Name: "ana"}, time.Now())
	require.NoError(t, err)
	tls := []string{"--tls-cert", file("server.pem"), "--tls-key", file("server-key.pem")}
	callers := []string{"--api-keys", keys}
	for name, test := range map[string]struct {
		args []string
		env  map[string]string
		says string // "" = it starts
	}{
		"neither":               {says: "has neither TLS nor a way to know who calls"},
		"only TLS":              {args: tls, says: "has no way to know who calls"},
		"TLS and a CA":          {args: append(tls[:4:4], "--tls-client-ca", file("ca.pem")), says: "has no way to know who calls"},
		"only callers":          {args: callers, says: "has no TLS"},
		"both":                  {args: append(tls[:4:4], callers...)},
		"insecure":              {args: []string{"--insecure"}},
		"insecure by variable":  {env: map[string]string{"GRAPHD_INSECURE": "true"}},
		"another interface":     {args: []string{"--listen", "[::]:0"}, says: "--listen [::]:0"},
		"every interface":       {args: []string{"--listen", ":0"}, says: "neither TLS"},
		"this machine":          {args: []string{"--listen", "127.0.0.1:0"}},
		"this machine, by name": {args: []string{"--listen", "localhost:0"}},
	} {
		t.Run(name, func(t *testing.T) {
			var o server.Options
			f := pflag.NewFlagSet("", pflag.ContinueOnError)
			o.RegisterFlags(f)
			require.NoError(t, f.Parse(append([]string{"--listen", "0.0.0.0:0", "--store", "memory"}, test.args...)))
			require.NoError(t, o.CompleteOptions(f, func(name string) string { return test.env[name] }))
			s, err := server.NewServer(t.Context(), o, zap.NewNop(), "test")
			if test.says == "" {
				require.NoError(t, err)
				s.StartServing()
				require.NoError(t, s.DrainServer(t.Context()))
				return
			}
			require.Equal(t, exit.CodeUsage, exit.CodeOf(err))
			require.ErrorContains(t, err, test.says)
		})
	}
}

func TestServeSaysHowToListenForOthers(t *testing.T) {
	r := commandRunner{}.runCommand(t, "serve", "--listen", "0.0.0.0:0", "--store", "memory")
	require.Equal(t, exit.CodeUsage, r.code)
	for _, way := range []string{"--tls-cert and --tls-key", "--listen 127.0.0.1:7700", "--insecure"} {
		require.Contains(t, r.err, way)
	}
	r = commandRunner{}.runCommand(t, "serve", "--certificate-rules", "x")
	require.Equal(t, exit.CodeUsage, r.code)
	require.Contains(t, r.err, "--certificate-rules needs --tls-client-ca")
	for _, option := range []string{"--api-keys", "--token-issuers"} {
		missing := filepath.Join(t.TempDir(), "missing.yaml")
		r := commandRunner{}.runCommand(t, "serve", "--listen", "127.0.0.1:0", "--store", "memory", option, missing)
		require.Equal(t, exit.CodeUsage, r.code)
		require.Contains(t, r.err, option+": "+missing+": can't be read")
	}
}
