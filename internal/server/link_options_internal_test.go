package server

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/cli/exit"
)

func TestOptionsOfLinks(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string // "" = valid
	}{
		"none":                    {func(o *Options) { o.LinkOptions = LinkOptions{MaxLinkValid: time.Hour, MaxLinkConnections: 1} }, ""},
		"all":                     {func(*Options) {}, ""},
		"no address":              {func(o *Options) { o.LinksAddress = "" }, ""},
		"no URL":                  {func(o *Options) { o.LinksURL = "" }, ""},
		"a URL with a path":       {func(o *Options) { o.LinksURL = "https://a.example/graphd/" }, ""},
		"plain text to this host": {func(o *Options) { o.LinksURL = "http://localhost:7790" }, ""},
		"plain text, insecure":    {func(o *Options) { o.LinksURL, o.Insecure = "http://a.example", true }, ""},
		"plain text":              {func(o *Options) { o.LinksURL = "http://a.example" }, "would send answers in plain text"},
		"another scheme":          {func(o *Options) { o.LinksURL = "javascript://a.example" }, "would send answers in plain text"},
		"no URL of a host":        {func(o *Options) { o.LinksURL = "a.example" }, "is no URL of a host"},
		"a URL with a query":      {func(o *Options) { o.LinksURL = "https://a.example?x=1" }, "is no URL of a host"},
		"a URL with a user":       {func(o *Options) { o.LinksURL = "https://u:p@a.example" }, "is no URL of a host"},
		"neither address nor URL": {func(o *Options) { o.LinksURL, o.LinksAddress = "", "" }, "needs --links-address or --links-url"},
		"an address without keys": {func(o *Options) { o.LinkKeys = "" }, "--links-address needs --link-keys"},
		"a URL without keys":      {func(o *Options) { o.LinkKeys, o.LinksAddress = "", "" }, "--links-url needs --link-keys"},
		"callers are not known":   {func(o *Options) { o.APIKeys = "" }, "needs a way to know who calls"},
		"too short":               {func(o *Options) { o.MaxLinkValid = time.Second }, "--max-link-valid is 1s"},
		"too long":                {func(o *Options) { o.MaxLinkValid = 91 * 24 * time.Hour }, "--max-link-valid is 2184h0m0s"},
		"no connections":          {func(o *Options) { o.MaxLinkConnections = 0 }, "--max-link-connections is 0"},
	} {
		o := Options{
			CallerOptions: CallerOptions{APIKeys: "keys.yaml"},
			LinkOptions: LinkOptions{
				LinkKeys: "k", LinksAddress: "127.0.0.1:0", LinksURL: "https://a.example", MaxLinkValid: time.Hour, MaxLinkConnections: 1,
			},
		}
		c.change(&o)
		err := o.validateLinks()
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.want, name)
		_, ok := errors.AsType[*exit.UsageError](err)
		require.True(t, ok, name)
	}
}

func TestAddressesOfLinksAreSecure(t *testing.T) {
	here, there := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4zero}
	o := Options{}
	require.NoError(t, o.checkLinksExposure(here))
	require.ErrorContains(t, o.checkLinksExposure(there), "other machines may reach --links-address")
	o.TLSCert = "server.pem"
	require.NoError(t, o.checkLinksExposure(there))
	o = Options{CallerOptions: CallerOptions{Insecure: true}}
	require.NoError(t, o.checkLinksExposure(there))
}

func TestKeysOfLinksAreRead(t *testing.T) {
	o := LinkOptions{LinkKeys: filepath.Join(t.TempDir(), "keys")}
	_, err := o.readLinkKeys(zap.NewNop())
	require.ErrorContains(t, err, "--link-keys")
	require.NoError(t, os.WriteFile(o.LinkKeys, []byte("k1: topsecret\n"), 0o600))
	_, err = o.readLinkKeys(zap.NewNop())
	require.ErrorContains(t, err, "line 1 has a secret")
	require.NotContains(t, err.Error(), "topsecret")
}
