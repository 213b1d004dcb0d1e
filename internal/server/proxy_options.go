package server

import (
	"errors"
	"net/http"
	"slices"

	"github.com/spf13/pflag"
	"golang.org/x/net/http/httpguts"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity/certificate"
	"github.com/graphd-dev/graphd/internal/identity/proxy"
	"github.com/graphd-dev/graphd/internal/web"
)

// ProxyOptions are those of a proxy whose word is taken for who calls.
type ProxyOptions struct {
	TrustHeader       string
	TrustGroupsHeader string
	TrustCertificate  string
}

// RegisterFlags registers the options.
func (o *ProxyOptions) RegisterFlags(f *pflag.FlagSet) {
	f.StringVar(&o.TrustHeader, flagTrustHeader, "",
		"header in which a proxy in front of --http names the caller, like X-Forwarded-User; it counts on connections with the certificate of --http-trust-certificate alone")
	f.StringVar(&o.TrustGroupsHeader, flagTrustGroupsHeader, "", "header in which the proxy of --http-trust-header lists the groups of the caller, with commas between")
	f.StringVar(&o.TrustCertificate, flagTrustCertificate, "",
		"name in the client certificate of the proxy of --http-trust-header: dns:NAME, uri:URI or cn:NAME, with * as in --certificate-rules")
}

// Names of options that are also used in messages.
const (
	flagTrustHeader       = "http-trust-header"
	flagTrustGroupsHeader = "http-trust-groups-header"
	flagTrustCertificate  = "http-trust-certificate"
)

// validateProxy returns an *exit.UsageError for values that can't work together.
func (o *Options) validateProxy() error {
	switch {
	case o.TrustHeader == "" && o.TrustGroupsHeader != "":
		return exit.Usagef("--%s needs --%s", flagTrustGroupsHeader, flagTrustHeader).WithHint("give the header that names the caller, too")
	case o.TrustHeader == "" && o.TrustCertificate != "":
		return exit.Usagef("--%s needs --%s", flagTrustCertificate, flagTrustHeader).WithHint("give the header that names the caller, like X-Forwarded-User")
	case o.TrustHeader == "":
		return nil
	case o.HTTP == "":
		return exit.Usagef("--%s needs --%s", flagTrustHeader, flagHTTP).WithHint("give an address, like --http 10.0.0.5:7780")
	case o.TLSClientCA == "":
		return exit.Usagef("--%s needs --tls-client-ca", flagTrustHeader).
			WithHint("give --tls-client-ca FILE with the CA of the proxy, besides --tls-cert and --tls-key: anybody can send a header")
	case o.TrustCertificate == "":
		return exit.Usagef("--%s needs --%s", flagTrustHeader, flagTrustCertificate).
			WithHint("give a name in the certificate of the proxy, like dns:proxy.example.com: every client can send a header")
	case !o.KnowsCallers():
		return exit.Usagef("--%s needs a way to know who calls without the proxy", flagTrustHeader).
			WithHint("give --api-keys, --token-issuers or --certificate-rules")
	}
	for _, given := range []struct{ flag, header string }{{flagTrustHeader, o.TrustHeader}, {flagTrustGroupsHeader, o.TrustGroupsHeader}} {
		if given.header != "" && (!httpguts.ValidHeaderFieldName(given.header) || slices.Contains(web.ReservedHeaders(), http.CanonicalHeaderKey(given.header))) {
			return exit.Usagef("--%s %q is no header that can name a caller", given.flag, given.header).WithHint("want a header that only the proxy sets, like X-Forwarded-User")
		}
	}
	if http.CanonicalHeaderKey(o.TrustHeader) == http.CanonicalHeaderKey(o.TrustGroupsHeader) {
		return exit.Usagef("--%s is the header of --%s", flagTrustGroupsHeader, flagTrustHeader).WithHint("want a header of its own, like X-Forwarded-Groups")
	}
	_, err := o.readTrustCertificate()
	return err
}

// readTrustCertificate reads the name of the certificate. The error is an *exit.UsageError.
func (o *ProxyOptions) readTrustCertificate() (certificate.Pattern, error) {
	pattern, err := certificate.ParsePattern(o.TrustCertificate)
	if wrong, ok := errors.AsType[*certificate.PatternError](err); ok {
		return pattern, exit.Usagef("--%s %s", flagTrustCertificate, wrong.Is).WithHint("want %s", wrong.Want)
	}
	return pattern, err
}

// openProxy has the word of the proxy accepted. The error is an *exit.UsageError.
func (o *ProxyOptions) openProxy(callers *callerFiles) error {
	if o.TrustHeader == "" {
		return nil
	}
	pattern, err := o.readTrustCertificate()
	if err != nil {
		return err
	}
	callers.Proxies = proxy.New(proxy.Options{UserHeader: o.TrustHeader, GroupsHeader: o.TrustGroupsHeader, Certificate: pattern})
	return nil
}
