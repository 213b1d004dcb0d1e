package server

import (
	"net/url"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/link"
	"github.com/graphd-dev/graphd/internal/loopback"
)

// LinkOptions are those of links by which people answer.
type LinkOptions struct {
	LinkKeys           string
	LinksAddress       string
	LinksURL           string
	MaxLinkValid       time.Duration
	MaxLinkConnections int
}

// RegisterFlags registers the options.
func (o *LinkOptions) RegisterFlags(f *pflag.FlagSet) {
	f.StringVar(&o.LinkKeys, flagLinkKeys, "",
		"file with keys that sign links: lines \"id: base64 of 32 bytes\", the first one signs, all verify; the same for all replicas")
	f.StringVar(&o.LinksAddress, flagLinksAddress, "", "address to serve the pages of links on over HTTP, with --tls-cert over HTTPS (default: not served)")
	f.StringVar(&o.LinksURL, flagLinksURL, "", "URL by which people reach --links-address, like https://answer.example.com (default: that address)")
	f.DurationVar(&o.MaxLinkValid, "max-link-valid", 7*24*time.Hour, "how long a link may be valid")
	f.IntVar(&o.MaxLinkConnections, "max-link-connections", 500, "how many connections --links-address may have; others wait until one closes")
}

// Names of options that are also used in messages.
const (
	flagLinkKeys     = "link-keys"
	flagLinksAddress = "links-address"
	flagLinksURL     = "links-url"
)

// Bounds of the options of links.
const (
	mostLinkValid       = 90 * 24 * time.Hour
	mostLinkConnections = 1 << 20
)

// validateLinks returns an *exit.UsageError for values that can't work together.
func (o *Options) validateLinks() error {
	switch {
	case o.LinkKeys == "" && o.LinksAddress != "":
		return exit.Usagef("--%s needs --%s", flagLinksAddress, flagLinkKeys).WithHint("give a file with keys; docs/links.md describes it")
	case o.LinkKeys == "" && o.LinksURL != "":
		return exit.Usagef("--%s needs --%s", flagLinksURL, flagLinkKeys).WithHint("give a file with keys; docs/links.md describes it")
	case o.MaxLinkValid < time.Minute || o.MaxLinkValid > mostLinkValid:
		return exit.Usagef("--max-link-valid is %s", o.MaxLinkValid).WithHint("want 1m to %s, like 72h", mostLinkValid)
	case o.MaxLinkConnections < 1 || o.MaxLinkConnections > mostLinkConnections:
		return exit.Usagef("--max-link-connections is %d", o.MaxLinkConnections).WithHint("want a number from 1 to %d", mostLinkConnections)
	case o.LinkKeys == "":
		return nil
	case o.LinksAddress == "" && o.LinksURL == "":
		return exit.Usagef("--%s needs --%s or --%s", flagLinkKeys, flagLinksAddress, flagLinksURL).
			WithHint("give the address at which this server serves links, or the URL of another one that does")
	case !o.KnowsCallers():
		return exit.Usagef("--%s needs a way to know who calls", flagLinkKeys).
			WithHint("give --api-keys, --token-issuers or --certificate-rules")
	}
	return o.checkLinksURL()
}

// checkLinksURL refuses a URL that would send answers in plain text.
func (o *Options) checkLinksURL() error {
	if o.LinksURL == "" {
		return nil
	}
	at, err := url.Parse(o.LinksURL)
	switch {
	case err != nil || at.Hostname() == "" || at.Opaque != "" || at.User != nil || at.RawQuery != "" || at.Fragment != "":
		return exit.Usagef("--%s is no URL of a host", flagLinksURL).WithHint("want https://HOST or https://HOST/PATH")
	case at.Scheme == "https", at.Scheme == "http" && (o.Insecure || loopback.IsHost(at.Hostname())):
		return nil
	}
	return exit.Usagef("--%s %s would send answers in plain text", flagLinksURL, o.LinksURL).WithHint("want https://HOST")
}

// readLinkKeys reads the keys of links. The error is an *exit.UsageError.
func (o *LinkOptions) readLinkKeys(log *zap.Logger) (link.Keys, error) {
	return readKeys(keyFile{flagLinkKeys, o.LinkKeys, "the keys of links"}, log, link.ParseKeys)
}
