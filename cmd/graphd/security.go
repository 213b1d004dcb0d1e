package main

import (
	"cmp"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/server"
)

const flagTLS = "tls"

// registerSecurityFlags registers how client commands protect their calls. The
// token is no default of its flag, since --help would show it.
func (p *program) registerSecurityFlags(f *pflag.FlagSet) {
	p.clientFlags = f
	env := p.environmentSecurity()
	f.BoolVar(&p.security.SystemRoots, flagTLS, false,
		"call over TLS a server whose CA is one of the system; --tls=false: in plain text, whatever the environment says (env GRAPHD_TLS)")
	f.StringVar(&p.security.CA, "tls-ca", env.CA, "call over TLS a server whose CA is in this PEM file (env GRAPHD_TLS_CA)")
	f.StringVar(&p.security.Cert, "tls-cert", env.Cert, "PEM file with the certificate of the caller, for servers that want one (env GRAPHD_TLS_CERT)")
	f.StringVar(&p.security.Key, "tls-key", env.Key, "PEM file with the private key of --tls-cert (env GRAPHD_TLS_KEY)")
	f.StringVar(&p.security.Token, "token", "", "token to send with each call, over TLS or to this host only (env GRAPHD_TOKEN)")
}

// environmentSecurity returns what the environment asks for.
func (p *program) environmentSecurity() client.Security {
	asked, _ := strconv.ParseBool(p.getenv("GRAPHD_TLS")) // completeSecurity returns the error
	return client.Security{
		SystemRoots: asked, CA: p.getenv("GRAPHD_TLS_CA"), Cert: p.getenv("GRAPHD_TLS_CERT"), Key: p.getenv("GRAPHD_TLS_KEY"),
		Token: p.getenv("GRAPHD_TOKEN"),
	}
}

// completeSecurity combines flags and environment. The error is an
// *exit.UsageError.
func (p *program) completeSecurity() error {
	if p.isOwnServer {
		return nil
	}
	if !p.clientFlags.Changed("token") {
		p.security.Token = p.getenv("GRAPHD_TOKEN")
	}
	if p.clientFlags.Changed(flagTLS) {
		if p.security.SystemRoots {
			return nil
		}
		for _, name := range []string{"tls-ca", "tls-cert", "tls-key"} {
			if p.clientFlags.Changed(name) {
				return exit.Usagef("--tls=false and --%s contradict each other", name).WithHint("leave one of them out")
			}
		}
		p.security = client.Security{Token: p.security.Token}
		return nil
	}
	text := p.getenv("GRAPHD_TLS")
	if text == "" {
		return nil
	}
	asked, err := strconv.ParseBool(text)
	if err != nil {
		return exit.Usagef("GRAPHD_TLS is %q", text).WithHint("want true or false")
	}
	p.security.SystemRoots = asked
	return nil
}

// assumeSecurity has the sent and the printed commands call the server of this process. Files
// that only clients have get names in capitals.
func (p *program) assumeSecurity(o server.Options) {
	asked := p.security.CA
	p.security, p.isOwnServer = client.Security{}, true
	if o.TLSCert == "" {
		return
	}
	p.security.CA = cmp.Or(asked, "CA.pem")
	if o.TLSClientCA != "" {
		p.security.Cert, p.security.Key = "CLIENT.pem", "CLIENT-KEY.pem"
	}
}
