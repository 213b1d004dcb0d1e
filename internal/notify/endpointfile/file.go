// Package endpointfile reads the file that names the endpoints of webhooks: strictly, with the
// line of every problem.
package endpointfile

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/egress"
	"github.com/graphd-dev/graphd/internal/identity/file"
	"github.com/graphd-dev/graphd/internal/notify"
	"github.com/graphd-dev/graphd/internal/notify/webhook"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/trail"
)

// MaxEndpoints bounds the endpoints of a file.
const MaxEndpoints = 32

// Endpoint is one endpoint of a file.
type Endpoint struct {
	notify.Endpoint

	URL     *url.URL
	Secrets []webhook.Secret
	// CheckAddress is the check of each address before a connection to the endpoint is opened.
	CheckAddress func(network, address string) error
}

// Sources are where a file may say that a secret stands, and which addresses are allowed.
type Sources struct {
	ReadFile func(path string) ([]byte, error)
	Getenv   func(name string) string
	Allowed  *egress.Policy
	Option   string // with the patterns of Allowed
}

// document is the form of the file.
type document struct {
	Endpoints []entry `yaml:"endpoints"`

	sources Sources
	parsed  []Endpoint
}

type entry struct {
	Name    string   `yaml:"name"`
	URL     string   `yaml:"url"`
	Secrets []secret `yaml:"secrets"`
	Tenant  string   `yaml:"tenant"`
	Graphs  []string `yaml:"graphs"`
	Groups  []string `yaml:"groups"`
	Kinds   []string `yaml:"kinds"`
}

// secret is where the text of a secret stands: one of the fields.
type secret struct {
	Value string `yaml:"value"`
	File  string `yaml:"file"`
	Env   string `yaml:"env"`
}

// Parse reads the text of a file. The error joins a *file.Error for each problem. It shows no
// secret.
func Parse(name string, text []byte, sources Sources) ([]Endpoint, error) {
	d := &document{sources: sources}
	if err := file.Decode(name, text, d); err != nil {
		return nil, err
	}
	return d.parsed, nil
}

// Problems lists the wrong values.
func (d *document) Problems() (all []file.Problem) {
	if n := len(d.Endpoints); n == 0 || n > MaxEndpoints {
		return []file.Problem{{Path: []any{"endpoints"}, Is: fmt.Sprintf("has %d entries", n), Want: fmt.Sprintf("1 to %d", MaxEndpoints)}}
	}
	d.parsed = make([]Endpoint, len(d.Endpoints))
	for i := range d.Endpoints {
		e, into := &d.Endpoints[i], &d.parsed[i]
		problems := e.parseFilter(into)
		problems = append(problems, e.parseURL(into, &d.sources)...)
		problems = append(problems, e.parseSecrets(into, &d.sources)...)
		if slices.ContainsFunc(d.Endpoints[:i], func(other entry) bool { return other.Name == e.Name }) {
			problems = append(problems, file.Problem{Path: []any{"name"}, Is: fmt.Sprintf("%q is there twice", e.Name), Want: "a name of its own"})
		}
		all = append(all, file.PrefixProblems(problems, "endpoints", i)...)
	}
	return all
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

func (e *entry) parseFilter(into *Endpoint) (problems []file.Problem) {
	into.Name, into.Tenant, into.Graphs, into.Groups = e.Name, e.Tenant, e.Graphs, e.Groups
	if !nameForm.MatchString(e.Name) {
		problems = append(problems, file.Problem{
			Path: []any{"name"}, Is: fmt.Sprintf("is %q", e.Name), Want: "1 to 64 of a-z 0-9 _ -, like mail",
		})
	}
	if e.Tenant != "" {
		if err := tenant.CheckName(e.Tenant); err != nil {
			problems = append(problems, file.Problem{Path: []any{"tenant"}, Is: fmt.Sprintf("is %q", e.Tenant), Want: tenant.NameRule})
		}
	}
	for _, list := range []struct {
		field string
		names []string
	}{{"graphs", e.Graphs}, {"groups", e.Groups}} {
		if i := slices.Index(list.names, ""); i >= 0 {
			problems = append(problems, file.Problem{Path: []any{list.field, i}, Is: "is empty", Want: "a name"})
		}
	}
	for i, text := range e.Kinds {
		kind := trail.Kind(text)
		if !slices.Contains(trail.Kinds(), kind) {
			problems = append(problems, file.Problem{Path: []any{"kinds", i}, Is: fmt.Sprintf("is %q", text), Want: "one of " + joinKinds()})
		}
		into.Kinds = append(into.Kinds, kind)
	}
	return problems
}

func joinKinds() string {
	var names []string
	for _, k := range trail.Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// parseURL reads the URL. Its problems do not show it: its path may have a secret.
func (e *entry) parseURL(into *Endpoint, s *Sources) []file.Problem {
	to, err := webhook.ParseTarget(e.URL, s.Allowed, s.Option)
	if refused, ok := errors.AsType[*webhook.TargetError](err); ok {
		return []file.Problem{{Path: []any{"url"}, Is: refused.Is, Want: refused.Want}}
	}
	into.URL, into.CheckAddress = to.URL, to.CheckAddress
	return nil
}

// Bounds of the secrets of an endpoint: the present one, and another while they are exchanged.
const maxSecrets = 2

func (e *entry) parseSecrets(into *Endpoint, s *Sources) (problems []file.Problem) {
	if n := len(e.Secrets); n == 0 || n > maxSecrets {
		return []file.Problem{{Path: []any{"secrets"}, Is: fmt.Sprintf("has %d entries", n), Want: "one, or two while they are exchanged"}}
	}
	for i := range e.Secrets {
		text, field, problem := e.Secrets[i].read(s)
		if problem == "" {
			key, err := webhook.ParseSecret(text)
			if err == nil {
				into.Secrets = append(into.Secrets, key)
				continue
			}
			problem = err.Error()
		}
		path := []any{"secrets", i}
		if field != "" {
			path = append(path, field)
		}
		problems = append(problems, file.Problem{Path: path, Is: problem, Want: webhook.SecretRule})
	}
	return problems
}

// read returns the text of a secret and the field that has it.
func (sec *secret) read(s *Sources) (text, field, problem string) {
	switch {
	case sec.Value != "" && sec.File == "" && sec.Env == "":
		return sec.Value, "value", ""
	case sec.File != "" && sec.Value == "" && sec.Env == "":
		text, err := s.ReadFile(sec.File)
		if err != nil {
			return "", "file", "can't be read: " + err.Error()
		}
		return string(text), "file", ""
	case sec.Env != "" && sec.Value == "" && sec.File == "":
		if text = s.Getenv(sec.Env); text == "" {
			return "", "env", fmt.Sprintf("names the variable %q, which is empty", sec.Env)
		}
		return text, "env", ""
	}
	return "", "", "has not exactly one of value, file and env"
}
