package main

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/contexts"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// Flags that say which server a client command calls, and how. --token is the other.
const (
	flagServer  = "server"
	flagContext = "context"
	flagTLS     = "tls"
	flagTLSCA   = "tls-ca"
	flagTLSCert = "tls-cert"
	flagTLSKey  = "tls-key"
	flagToken   = "token"
	flagTenant  = "tenant"
)

// connection says which server client commands call, and how: by flags, by the
// environment, or by a context. For each option flags win over the environment, and
// the environment over the context. A context is used as a whole or not at all: its
// token and its certificate go to its own server only.
type connection struct {
	client.Security

	server  string
	context string // --context

	flags       *pflag.FlagSet // of every command
	getenv      func(string) string
	configHome  string // folder of the user's configurations; "" = unknown
	isOwnServer bool   // the server is of this process: nothing else counts
}

// registerFlags registers the flags. The token is no default of its flag, since --help
// would show it.
func (c *connection) registerFlags(f *pflag.FlagSet, getenv func(string) string, configHome string) {
	c.flags, c.getenv, c.configHome = f, getenv, configHome
	env := c.readEnvironment()
	f.StringVar(&c.server, flagServer, cmp.Or(getenv("GRAPHD_SERVER"), client.DefaultServer), "server to call, HOST:PORT (env GRAPHD_SERVER)")
	f.StringVar(&c.context, flagContext, "",
		"call the server of this context, see graphd context; '' = of none, whatever is the current one (env GRAPHD_CONTEXT)")
	f.BoolVar(&c.SystemRoots, flagTLS, false,
		"call over TLS a server whose CA is one of the system; --tls=false: in plain text, whatever environment and context say (env GRAPHD_TLS)")
	f.StringVar(&c.CA, flagTLSCA, env.CA, "call over TLS a server whose CA is in this PEM file (env GRAPHD_TLS_CA)")
	f.StringVar(&c.Cert, flagTLSCert, env.Cert, "PEM file with the certificate of the caller, for servers that want one (env GRAPHD_TLS_CERT)")
	f.StringVar(&c.Key, flagTLSKey, env.Key, "PEM file with the private key of --tls-cert (env GRAPHD_TLS_KEY)")
	f.StringVar(&c.Token, flagToken, "", "token to send with each call, over TLS or to this host only (env GRAPHD_TOKEN)")
	f.StringVar(&c.Tenant, flagTenant, "", "call in this tenant, one of those that the caller has (default: its own) (env GRAPHD_TENANT)")
}

// readEnvironment returns what the environment asks for.
func (c *connection) readEnvironment() client.Security {
	asked, _ := strconv.ParseBool(c.getenv("GRAPHD_TLS")) // checkEnvironment returns the error
	return client.Security{
		SystemRoots: asked, CA: c.getenv("GRAPHD_TLS_CA"), Cert: c.getenv("GRAPHD_TLS_CERT"), Key: c.getenv("GRAPHD_TLS_KEY"),
		Token: c.getenv("GRAPHD_TOKEN"), Tenant: c.getenv("GRAPHD_TENANT"),
	}
}

// checkEnvironment returns an *exit.UsageError for a wrong variable that counts.
func (c *connection) checkEnvironment() error {
	text := c.getenv("GRAPHD_TLS")
	if _, err := strconv.ParseBool(text); err != nil && text != "" && !c.flags.Changed(flagTLS) {
		return exit.Usagef("GRAPHD_TLS is %q", text).WithHint("want true or false")
	}
	return nil
}

// readFlags returns what the command line asks for.
func (c *connection) readFlags() client.Security {
	var given client.Security
	for name, at := range map[string]struct{ from, to *string }{
		flagTLSCA: {&c.CA, &given.CA}, flagTLSCert: {&c.Cert, &given.Cert}, flagTLSKey: {&c.Key, &given.Key}, flagToken: {&c.Token, &given.Token},
		flagTenant: {&c.Tenant, &given.Tenant},
	} {
		if c.flags.Changed(name) {
			*at.to = *at.from
		}
	}
	given.SystemRoots = c.flags.Changed(flagTLS) && c.SystemRoots
	return given
}

// replaceOptions returns the options of `below` with those of `above` that are given. A
// certificate and its key are one option.
func replaceOptions(below, above client.Security) client.Security {
	if above.Cert != "" || above.Key != "" {
		below.Cert, below.Key = above.Cert, above.Key
	}
	below.SystemRoots = below.SystemRoots || above.SystemRoots
	below.CA, below.Token = cmp.Or(above.CA, below.CA), cmp.Or(above.Token, below.Token)
	below.Tenant = cmp.Or(above.Tenant, below.Tenant)
	return below
}

// combineSources combines flags, environment and context, and returns the files with
// secrets of the context that other users may read. The error is an
// *exit.UsageError.
func (c *connection) combineSources() (exposed []string, err error) {
	if c.isOwnServer {
		return nil, nil
	}
	list, chosen, err := c.chooseContext()
	if err != nil {
		return nil, err
	}
	above := c.readFlags()
	if c.context == "" { // the context of a flag puts the environment aside
		if err := c.checkEnvironment(); err != nil {
			return nil, err
		}
		above = replaceOptions(c.readEnvironment(), above)
	}
	security := above
	if chosen != nil {
		c.server = chosen.Server
		security = replaceOptions(chosen.Security(), above)
		if above.Token == "" {
			if security.Token, err = chosen.ReadToken(); err != nil {
				return nil, err
			}
			exposed = list.ListExposed(chosen)
		}
	}
	if c.flags.Changed(flagTLS) && !c.SystemRoots {
		for _, name := range []string{flagTLSCA, flagTLSCert, flagTLSKey} {
			if c.flags.Changed(name) {
				return nil, exit.Usagef("--tls=false and --%s contradict each other", name).WithHint("leave one of them out")
			}
		}
		security = client.Security{Token: security.Token, Tenant: security.Tenant}
	}
	c.Security = security
	return exposed, nil
}

// chooseContext returns the context of the command and the list that has it, nil
// when it has none. A server of a flag or of the environment puts the current
// context aside.
func (c *connection) chooseContext() (*contexts.List, *contexts.Context, error) {
	name, source := "", ""
	switch env := c.getenv("GRAPHD_CONTEXT"); {
	case c.flags.Changed(flagContext) && c.context == "":
		return nil, nil, nil
	case c.flags.Changed(flagContext) && c.flags.Changed(flagServer):
		return nil, nil, exit.Usagef("--context and --server contradict each other").WithHint("leave one of them out: a context has a server")
	case c.flags.Changed(flagContext):
		name, source = c.context, "--context"
	case c.flags.Changed(flagServer):
		return nil, nil, nil
	case env != "" && c.getenv("GRAPHD_SERVER") != "":
		return nil, nil, exit.Usagef("GRAPHD_CONTEXT and GRAPHD_SERVER contradict each other").
			WithHint("unset one of them, or give --context or --server")
	case env != "":
		name, source = env, "GRAPHD_CONTEXT"
	case c.getenv("GRAPHD_SERVER") != "" || c.contextsFile() == "":
		return nil, nil, nil
	}
	list, err := c.readContexts()
	if err != nil {
		return nil, nil, err
	}
	if name == "" {
		if name, source = list.Current, "current"; name == "" {
			return nil, nil, nil
		}
	}
	chosen, err := list.FindContext(source, name)
	return list, chosen, err
}

// contextsFile returns the path of the contexts, "" when the user has no folder.
func (c *connection) contextsFile() string {
	if home := c.getenv("GRAPHD_CONFIG_HOME"); home != "" {
		return filepath.Join(home, "contexts.yaml")
	}
	if c.configHome == "" {
		return ""
	}
	return filepath.Join(c.configHome, "graphd", "contexts.yaml")
}

// requireContextsFile is contextsFile for commands that need it. The error is an
// *exit.UsageError.
func (c *connection) requireContextsFile() (string, error) {
	if path := c.contextsFile(); path != "" {
		return path, nil
	}
	return "", exit.Usagef("the folder of contexts is unknown").WithHint("name one with GRAPHD_CONFIG_HOME, or set HOME")
}

func (c *connection) readContexts() (*contexts.List, error) {
	path, err := c.requireContextsFile()
	if err != nil {
		return nil, err
	}
	return contexts.ReadList(path)
}

// useOwnServer has the sent and the printed commands call a server of this process. Files
// that only clients have get names in capitals.
func (c *connection) useOwnServer(address string, o server.Options) {
	asked := c.CA
	c.Security, c.server, c.isOwnServer = client.Security{}, address, true
	if o.TLSCert == "" {
		return
	}
	c.CA = cmp.Or(asked, "CA.pem")
	if o.TLSClientCA != "" {
		c.Cert, c.Key = "CLIENT.pem", "CLIENT-KEY.pem"
	}
}

// listFlags returns the flags with which a command in the same environment calls the
// same server. They have no token: commands with them are printed.
func (c *connection) listFlags() []string {
	if c.isOwnServer {
		return c.listOwnServerFlags()
	}
	var list []string
	for _, name := range []string{flagContext, flagServer, flagTLS, flagTLSCA, flagTLSCert, flagTLSKey, flagTenant} {
		switch f := c.flags.Lookup(name); {
		case !f.Changed:
		case name == flagTLS && c.SystemRoots:
			list = append(list, "--tls")
		case name == flagTLS:
			list = append(list, "--tls=false")
		default:
			list = append(list, "--"+name, f.Value.String())
		}
	}
	return list
}

// listOwnServerFlags is listFlags for the server of this process.
func (c *connection) listOwnServerFlags() []string {
	var list []string
	if c.server != cmp.Or(c.getenv("GRAPHD_SERVER"), client.DefaultServer) || c.isContextSet() {
		list = []string{"--server", c.server}
	}
	if c.getenv("GRAPHD_TENANT") != "" {
		list = append(list, "--"+flagTenant, tenant.Default)
	}
	switch own, env := c.Flags(), c.readEnvironment().Flags(); {
	case slices.Equal(own, env):
		return list
	case len(own) == 0:
		return append(list, "--tls=false")
	default:
		return append(list, own...)
	}
}

// isContextSet reports whether commands without flags may call the server of a
// context.
func (c *connection) isContextSet() bool {
	if c.getenv("GRAPHD_CONTEXT") != "" {
		return true
	}
	if c.getenv("GRAPHD_SERVER") != "" || c.contextsFile() == "" {
		return false
	}
	list, err := c.readContexts()
	return err != nil || list.Current != ""
}

// takeRunContext returns the JSON of `run --context JSON`, which --run-context has
// replaced, "" when --context names a context: no name begins like this.
func (c *connection) takeRunContext() string {
	text := c.context
	if text != "-" && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "@") {
		return ""
	}
	c.context, c.flags.Lookup(flagContext).Changed = "", false
	return text
}
