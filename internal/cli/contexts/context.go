package contexts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity/file"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// Context is a server and how to call it. Its paths are absolute.
type Context struct {
	Name      string `yaml:"name"`
	Server    string `yaml:"server"`
	TLS       bool   `yaml:"tls,omitempty"`
	TLSCA     string `yaml:"tls-ca,omitempty"`
	TLSCert   string `yaml:"tls-cert,omitempty"`
	TLSKey    string `yaml:"tls-key,omitempty"`
	Token     string `yaml:"token,omitempty" json:"-"`
	TokenFile string `yaml:"token-file,omitempty"` // read for each command
	Tenant    string `yaml:"tenant,omitempty"`     // "" = the caller's own
}

// MaxContexts bounds the contexts of a file.
const MaxContexts = 1000

// maxTokenBytes bounds a token of a file. Headers with more are refused by servers.
const maxTokenBytes = 16 << 10

// Security returns how to call the server, without the token of a file.
func (c *Context) Security() client.Security {
	return client.Security{SystemRoots: c.TLS, CA: c.TLSCA, Cert: c.TLSCert, Key: c.TLSKey, Token: c.Token, Tenant: c.Tenant}
}

// ReadToken returns the token, "" when the context has none. The error is an
// *exit.UsageError without the token.
func (c *Context) ReadToken() (string, error) {
	if c.TokenFile == "" {
		return c.Token, nil
	}
	refuse := func(is string) error {
		return exit.Usagef("context %s: token-file %s %s", c.Name, c.TokenFile, is).
			WithHint("want a file of at most %d bytes with the token alone", maxTokenBytes)
	}
	text, err := file.Read(c.TokenFile)
	if err != nil {
		return "", refuse("can't be read")
	}
	token := strings.TrimSpace(string(text))
	switch {
	case token == "":
		return "", refuse("is empty")
	case len(token) > maxTokenBytes || strings.ContainsFunc(token, isNoTokenCharacter):
		return "", refuse("has no token")
	}
	return token, nil
}

// isNoTokenCharacter reports whether a header can't carry a character in a token.
func isNoTokenCharacter(r rune) bool { return r <= ' ' || r > '~' }

func namePattern() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`) }

const wantedName = "1 to 64 letters, digits and . _ -, the first a letter or digit"

// findProblems lists the wrong values of a context.
func (c *Context) findProblems() []file.Problem {
	var all []file.Problem
	add := func(field, is, want string) {
		all = append(all, file.Problem{Path: []any{field}, Is: is, Want: want})
	}
	if !namePattern().MatchString(c.Name) {
		add("name", "is no name of a context", wantedName)
	}
	if c.Server == "" {
		add("server", "is missing", "HOST:PORT")
	}
	for _, path := range []struct{ field, value string }{
		{"tls-ca", c.TLSCA}, {"tls-cert", c.TLSCert}, {"tls-key", c.TLSKey}, {"token-file", c.TokenFile},
	} {
		if path.value != "" && !filepath.IsAbs(path.value) {
			add(path.field, "is a relative path", "an absolute one")
		}
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		add("tls-cert", "and tls-key belong together, and one is missing", "both or neither")
	}
	if c.Token != "" && c.TokenFile != "" {
		add("token", "and token-file are both given", "one of them")
	}
	if refused, ok := errors.AsType[*tenant.Error](tenant.CheckName(c.Tenant)); ok && c.Tenant != "" {
		add("tenant", refused.Is, refused.Want)
	}
	if len(c.Token) > maxTokenBytes || strings.ContainsFunc(c.Token, isNoTokenCharacter) {
		add("token", "is no token", fmt.Sprintf("at most %d letters, digits and punctuation of ASCII", maxTokenBytes))
	}
	return all
}

// List is the contexts of a file.
type List struct {
	Current  string    `yaml:"current,omitempty"` // name of the context of commands that name none; "" = none
	Contexts []Context `yaml:"contexts"`

	path string
}

// Problems lists the wrong values.
func (l *List) Problems() []file.Problem {
	if len(l.Contexts) > MaxContexts {
		return []file.Problem{{Path: []any{"contexts"}, Is: fmt.Sprintf("has %d contexts", len(l.Contexts)), Want: fmt.Sprintf("at most %d", MaxContexts)}}
	}
	var all []file.Problem
	seen := map[string]bool{}
	for i := range l.Contexts {
		found := l.Contexts[i].findProblems()
		if seen[l.Contexts[i].Name] {
			found = append(found, file.Problem{Path: []any{"name"}, Is: "is the name of another context too", Want: "a name of its own"})
		}
		seen[l.Contexts[i].Name] = true
		all = append(all, file.PrefixProblems(found, "contexts", i)...)
	}
	if l.Current != "" && !seen[l.Current] {
		all = append(all, file.Problem{Path: []any{"current"}, Is: "is no context of the file", Want: "the name of one, or none"})
	}
	return all
}

// findContext returns the context of a name, nil when there is none.
func (l *List) findContext(name string) *Context {
	at := slices.IndexFunc(l.Contexts, func(c Context) bool { return c.Name == name })
	if at < 0 {
		return nil
	}
	return &l.Contexts[at]
}

// FindContext returns the context of a name. The error is an *exit.UsageError that
// names the source of the name.
func (l *List) FindContext(source, name string) (*Context, error) {
	if c := l.findContext(name); c != nil {
		return c, nil
	}
	refused := exit.Usagef("%s %q is no context of %s", source, name, l.path)
	if len(l.Contexts) == 0 {
		return nil, refused.WithHint("there is none: make one with graphd context add NAME --server HOST:PORT")
	}
	var names []string
	for _, c := range l.Contexts[:min(len(l.Contexts), maxSuggestions)] {
		names = append(names, c.Name)
	}
	if len(l.Contexts) > maxSuggestions {
		names = append(names, "…")
	}
	return nil, refused.WithHint("want %s; graphd context list shows all", strings.Join(names, ", "))
}

// maxSuggestions bounds the names in an error.
const maxSuggestions = 10

// ListExposed returns the files with secrets of a context that other users of the
// host may read: the file of the contexts, and that of the token.
func (l *List) ListExposed(c *Context) []string {
	var all []string
	if c.Token != "" && isReadableByOthers(l.path) {
		all = append(all, l.path)
	}
	if c.TokenFile != "" && isReadableByOthers(c.TokenFile) {
		all = append(all, c.TokenFile)
	}
	return all
}

// isReadableByOthers reports false on Windows, whose modes don't tell.
func isReadableByOthers(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o044 != 0
}
