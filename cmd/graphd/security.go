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

// callSecurity says how client commands protect their calls: by --tls and the flags
// beside it, by --token, or by the environment.
type callSecurity struct {
	client.Security

	flags       *pflag.FlagSet // of every command
	getenv      func(string) string
	isOwnServer bool // the server is of this process: flags and environment do not count
}

// registerFlags registers the flags. The token is no default of its flag, since --help
// would show it.
func (s *callSecurity) registerFlags(f *pflag.FlagSet, getenv func(string) string) {
	s.flags, s.getenv = f, getenv
	env := s.readEnvironment()
	f.BoolVar(&s.SystemRoots, flagTLS, false,
		"call over TLS a server whose CA is one of the system; --tls=false: in plain text, whatever the environment says (env GRAPHD_TLS)")
	f.StringVar(&s.CA, "tls-ca", env.CA, "call over TLS a server whose CA is in this PEM file (env GRAPHD_TLS_CA)")
	f.StringVar(&s.Cert, "tls-cert", env.Cert, "PEM file with the certificate of the caller, for servers that want one (env GRAPHD_TLS_CERT)")
	f.StringVar(&s.Key, "tls-key", env.Key, "PEM file with the private key of --tls-cert (env GRAPHD_TLS_KEY)")
	f.StringVar(&s.Token, "token", "", "token to send with each call, over TLS or to this host only (env GRAPHD_TOKEN)")
}

// readEnvironment returns what the environment asks for.
func (s *callSecurity) readEnvironment() client.Security {
	asked, _ := strconv.ParseBool(s.getenv("GRAPHD_TLS")) // combineSources returns the error
	return client.Security{
		SystemRoots: asked, CA: s.getenv("GRAPHD_TLS_CA"), Cert: s.getenv("GRAPHD_TLS_CERT"), Key: s.getenv("GRAPHD_TLS_KEY"),
		Token: s.getenv("GRAPHD_TOKEN"),
	}
}

// combineSources combines flags and environment. The error is an *exit.UsageError.
func (s *callSecurity) combineSources() error {
	if s.isOwnServer {
		return nil
	}
	if !s.flags.Changed("token") {
		s.Token = s.getenv("GRAPHD_TOKEN")
	}
	if s.flags.Changed(flagTLS) {
		if s.SystemRoots {
			return nil
		}
		for _, name := range []string{"tls-ca", "tls-cert", "tls-key"} {
			if s.flags.Changed(name) {
				return exit.Usagef("--tls=false and --%s contradict each other", name).WithHint("leave one of them out")
			}
		}
		s.Security = client.Security{Token: s.Token}
		return nil
	}
	text := s.getenv("GRAPHD_TLS")
	if text == "" {
		return nil
	}
	asked, err := strconv.ParseBool(text)
	if err != nil {
		return exit.Usagef("GRAPHD_TLS is %q", text).WithHint("want true or false")
	}
	s.SystemRoots = asked
	return nil
}

// useOwnServer has the sent and the printed commands call the server of this process. Files
// that only clients have get names in capitals.
func (s *callSecurity) useOwnServer(o server.Options) {
	asked := s.CA
	s.Security, s.isOwnServer = client.Security{}, true
	if o.TLSCert == "" {
		return
	}
	s.CA = cmp.Or(asked, "CA.pem")
	if o.TLSClientCA != "" {
		s.Cert, s.Key = "CLIENT.pem", "CLIENT-KEY.pem"
	}
}
