package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/graph"
)

// Options are all options of a server. A flag --drain-timeout is also
// GRAPHD_DRAIN_TIMEOUT in the environment and drain-timeout in the file that
// --config names. Flags override the environment, and the environment overrides the
// file.
type Options struct {
	Listen         string
	Store          string
	TLSCert        string
	TLSKey         string
	TLSClientCA    string
	Migrate        bool
	Graphs         []string
	Metrics        string
	Profiles       bool
	LogLevel       string
	LogFormat      string
	Checkpoints    string
	Events         string
	StepsPerCommit int
	Compress       bool
	EncryptionKeys string
	DrainTimeout   time.Duration
	Lease          time.Duration
	Undo           time.Duration
	WorkerKey      string
	WorkerBeat     time.Duration
	WorkerLease    time.Duration
	WorkerLosses   int
	EndpointAllow  []string
	Config         string

	EndpointTLSOptions
	CallerOptions
	AuditOptions
	AccessOptions
	QuotaOptions
	WebhookOptions
	LinkOptions
	HTTPOptions
	LangGraphOptions
	SignInOptions
	ProxyOptions
	LimitOptions
	GraphOptions
	ValueOptions
	StoreOptions
	RedisTLSOptions

	Embedding

	LogsFailuresOnly bool // successful calls are not logged, unless at level debug
}

// RegisterFlags registers the options, with their defaults.
func (o *Options) RegisterFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Listen, "listen", client.DefaultServer, "address to serve gRPC on, HOST:PORT")
	f.StringVar(&o.TLSCert, "tls-cert", "", "PEM file with the certificate of the server: serve gRPC over TLS only; read again when it changes")
	f.StringVar(&o.TLSKey, "tls-key", "", "PEM file with the private key of --tls-cert; read again when it changes")
	f.StringVar(&o.TLSClientCA, "tls-client-ca", "",
		"PEM file with CAs: clients must present a certificate of one of them; read again when it changes")
	f.StringVar(&o.Store, "store", DefaultStore, "memory, sqlite:PATH, or redis://[USER:PASSWORD@]HOST:PORT/DB, which servers can share")
	f.BoolVar(&o.Migrate, "migrate", false, "bring a store of an earlier graphd to the format of this one before serving; no other server may use it then")
	f.StringArrayVar(&o.Graphs, flagGraphs, nil, "folder with graph files to load (repeatable)")
	f.StringVar(&o.Metrics, "metrics", "", "address to serve /metrics and /healthz on over HTTP (default: not served)")
	f.BoolVar(&o.Profiles, "profiles", false, "serve /debug/pprof where /metrics is: what the server spends time and memory on")
	f.StringVar(&o.LogLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.LogFormat, "log-format", "", "json or console (default: console on a terminal, else json)")
	f.DurationVar(&o.DrainTimeout, "drain-timeout", 20*time.Second, "how long running nodes may finish after a signal")
	f.DurationVar(&o.Lease, "lease", 15*time.Second,
		"how long a silent server keeps the threads it runs, before another one on the same store takes them over")
	f.DurationVar(&o.Undo, "undo", 0,
		"how long an answer can be taken back when its question does not say; the run goes on after that (0: at once)")
	f.StringVar(&o.Checkpoints, "checkpoints", "",
		"how many checkpoints to keep of a thread at rest, with the events since, or all (default: 64 with redis, else all)")
	f.BoolVar(&o.Compress, "compress", false, "compress what the store keeps: records of 512 bytes and more")
	f.StringVar(&o.EncryptionKeys, FlagEncryptionKeys, "",
		"file with keys that encrypt what the store keeps: lines \"id: base64 of 32 bytes\", the first one encrypts, all decrypt")
	f.StringVar(&o.Events, "events", KeepAll,
		"how many events to keep of a thread, also while it runs; a follower that is further behind loses its place")
	f.IntVar(&o.StepsPerCommit, "steps-per-commit", 64,
		"how many supersteps in a row may share a commit when they only compute expressions; 1: each has its own")
	f.StringVar(&o.WorkerKey, "worker-key", "",
		"secret that marks the leases of workers, the same for all replicas (default: one that the store keeps)")
	f.DurationVar(&o.WorkerBeat, "worker-beat", 10*time.Second, "how often workers send a beat")
	f.DurationVar(&o.WorkerLease, "worker-lease", 30*time.Second,
		"how long a task waits for its silent worker before another one gets it")
	f.IntVar(&o.WorkerLosses, "worker-losses", 5, "how many workers, or calls of an endpoint, a task may lose before it fails")
	f.StringArrayVar(&o.EndpointAllow, FlagEndpointAllow, nil, "endpoint that nodes of graphs may have: HOST, HOST:PORT, *.NAME:PORT, RANGE:PORT, * "+
		"or SCHEME:ADDRESS (repeatable; default: * where only this machine reaches --listen, else none)")
	f.StringVar(&o.Config, "config", "", "YAML file with options")
	o.EndpointTLSOptions.RegisterFlags(f)
	o.CallerOptions.RegisterFlags(f)
	o.AuditOptions.RegisterFlags(f)
	o.AccessOptions.RegisterFlags(f)
	o.QuotaOptions.RegisterFlags(f)
	o.WebhookOptions.RegisterFlags(f)
	o.LinkOptions.RegisterFlags(f)
	o.HTTPOptions.RegisterFlags(f)
	o.LangGraphOptions.RegisterFlags(f)
	o.SignInOptions.RegisterFlags(f)
	o.ProxyOptions.RegisterFlags(f)
	o.LimitOptions.RegisterFlags(f)
	o.GraphOptions.RegisterFlags(f)
	o.ValueOptions.RegisterFlags(f)
	o.StoreOptions.RegisterFlags(f)
	o.RedisTLSOptions.RegisterFlags(f)
}

// minLease is long enough to renew a lease three times with a slow store.
const minLease = time.Second

// DefaultStore is the store of a server without --store.
const DefaultStore = "sqlite:graphd.db"

// Names of options that are also used in messages.
const (
	flagConfig         = "config"
	flagGraphs         = "graphs"
	FlagEndpointAllow  = "endpoint-allow"
	FlagEncryptionKeys = "encryption-keys"
)

// CompleteOptions sets options without a flag from the environment, then from the
// file, and checks all options.
func (o *Options) CompleteOptions(f *pflag.FlagSet, getenv func(string) string) error {
	if err := o.readSources(f, getenv); err != nil {
		return err
	}
	o.Getenv = getenv
	return o.validateOptions()
}

func (o *Options) readSources(f *pflag.FlagSet, getenv func(string) string) error {
	own := &Options{}
	table := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.RegisterFlags(table)
	given := make(map[string]bool)
	table.VisitAll(func(t *pflag.Flag) { given[t.Name] = f.Changed(t.Name) })
	if err := setFromEnv(f, given, getenv); err != nil {
		return err
	}
	if o.Config == "" {
		return nil
	}
	return setFromFile(f, given, o.Config)
}

// validateOptions returns an error for values that can't work together.
func (o *Options) validateOptions() error {
	switch {
	case o.Lease < minLease:
		return exit.Usagef("--lease is %s: a server must have the time to renew it", o.Lease).
			WithHint("want at least %s, like 15s", minLease)
	case o.Checkpoints != "" && o.Checkpoints != KeepAll && !isCount(o.Checkpoints):
		return exit.Usagef("--checkpoints is %q", o.Checkpoints).WithHint("want a number of 1 or more, or %s", KeepAll)
	case o.Events != KeepAll && o.EventLimit() < minEvents:
		return exit.Usagef("--events is %q: a follower of a quick run must not lose its place", o.Events).
			WithHint("want a number of %d or more, or %s", minEvents, KeepAll)
	case approval.CheckUndo(&o.Undo) != "":
		return exit.Usagef("--undo %s", approval.CheckUndo(&o.Undo))
	case o.Profiles && o.Metrics == "":
		return exit.Usagef("--profiles needs --metrics").WithHint("give an address, like --metrics 127.0.0.1:9090")
	case o.StepsPerCommit < 1:
		return exit.Usagef("--steps-per-commit is %d", o.StepsPerCommit).WithHint("want 1 or more")
	case o.WorkerBeat <= 0:
		return exit.Usagef("--worker-beat is %s", o.WorkerBeat).WithHint("want more than 0, like 10s")
	case o.WorkerLease < 2*o.WorkerBeat:
		return exit.Usagef("--worker-lease is %s: a lease must outlast a beat that is late", o.WorkerLease).
			WithHint("want at least %s, twice --worker-beat", 2*o.WorkerBeat)
	case o.WorkerLosses <= 0:
		return exit.Usagef("--worker-losses is %d", o.WorkerLosses).WithHint("want 1 or more")
	}
	if _, err := parseEndpointPatterns(o.EndpointAllow); err != nil {
		return err
	}
	return errors.Join(
		o.validateTLS(), o.EndpointTLSOptions.validateOptions(), o.RedisTLSOptions.validateOptions(o.Store), o.validateCallers(),
		o.validateAccess(), o.AuditOptions.validateOptions(), o.validateWebhooks(), o.validateLinks(), o.validateHTTP(), o.validateLangGraph(), o.validateSignIn(), o.validateProxy(),
		o.LimitOptions.validateOptions(),
		o.GraphOptions.validateOptions(), o.ValueOptions.validateOptions(), o.StoreOptions.validateOptions())
}

// KeepAll is the value that keeps every checkpoint.
const KeepAll = "all"

func isCount(text string) bool {
	n, err := strconv.ParseUint(text, 10, 32)
	return err == nil && n > 0
}

// CheckpointLimit returns the number of checkpoints that a thread at rest keeps, 0
// = all.
func (o *Options) CheckpointLimit(store StoreConfig) uint64 {
	switch o.Checkpoints {
	case "":
		return store.defaultCheckpoints()
	case KeepAll:
		return 0
	}
	n, _ := strconv.ParseUint(o.Checkpoints, 10, 32) // validated before
	return n
}

// minEvents is the number of events in a second of a quick run.
const minEvents = 1000

// EventLimit returns the number of events that a thread keeps, 0 = all.
func (o *Options) EventLimit() uint64 {
	n, _ := strconv.ParseUint(o.Events, 10, 32) // 0 for KeepAll
	return n
}

func envName(flag string) string {
	return "GRAPHD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// UnknownVariables lists variables that look like a mistyped option. It ignores all
// others: Kubernetes sets GRAPHD_PORT and the like for a service named graphd.
func UnknownVariables(environ []string) []string {
	// These are for clients; servers that they start inherit them.
	known := []string{"GRAPHD_SERVER", "GRAPHD_BIN", "GRAPHD_TLS", "GRAPHD_TLS_CA", "GRAPHD_TOKEN", "GRAPHD_TENANT", "GRAPHD_CONTEXT", "GRAPHD_CONFIG_HOME"}
	table := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&Options{}).RegisterFlags(table)
	table.VisitAll(func(f *pflag.Flag) { known = append(known, envName(f.Name)) })
	var texts []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "GRAPHD_") || slices.Contains(known, name) ||
			strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT") {
			continue
		}
		if near, _, _ := strings.Cut(strings.TrimPrefix(graph.Suggest(name, known), "; "), ";"); strings.HasPrefix(near, "did you mean") {
			texts = append(texts, fmt.Sprintf("the variable %s is no option: %s", name, near))
		}
	}
	slices.Sort(texts)
	return texts
}

func setFromEnv(f *pflag.FlagSet, given map[string]bool, getenv func(string) string) error {
	var all []error
	for name, done := range given {
		text := getenv(envName(name))
		if done || text == "" {
			continue
		}
		given[name] = true
		parts := []string{text}
		if _, many := f.Lookup(name).Value.(pflag.SliceValue); many {
			parts = splitValues(name, text)
		}
		all = append(all, setFlag(f, name, envName(name), parts))
	}
	return errors.Join(all...)
}

// splitValues divides the values of a variable: folders as the system divides them, and all
// others, which may have colons, at commas.
func splitValues(name, text string) []string {
	if name == flagGraphs {
		return filepath.SplitList(text)
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

func setFromFile(f *pflag.FlagSet, given map[string]bool, path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return exit.Usagef("--config: %v", err).WithHint("want a YAML file like `listen: 0.0.0.0:7700`")
	}
	var document map[string]yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return exit.Usagef("%s: %v", path, err).WithHint("want one `option: value` per line")
	}
	var all []error
	for key, node := range document {
		done, known := given[key]
		where := fmt.Sprintf("%s line %d: %s", path, node.Line, key)
		if !known || key == flagConfig {
			names := slices.DeleteFunc(optionNames(given), func(name string) bool { return name == flagConfig })
			all = append(all, exit.Usagef("%s: unknown option%s", where, graph.Suggest(key, names)).WithHint("correct the file"))
			continue
		}
		var parts []string
		if err := node.Decode(&parts); err != nil {
			parts = []string{node.Value}
			if node.Kind != yaml.ScalarNode {
				all = append(all, exit.Usagef("%s: want a text or a list of texts", where).WithHint("correct the file"))
				continue
			}
		}
		if !done {
			all = append(all, setFlag(f, key, where, parts))
		}
	}
	return errors.Join(all...)
}

func optionNames(m map[string]bool) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	return names
}

// setFlag sets a flag to values from the environment or the file.
func setFlag(f *pflag.FlagSet, name, where string, values []string) error {
	if _, many := f.Lookup(name).Value.(pflag.SliceValue); !many && len(values) != 1 {
		return exit.Usagef("%s: takes one value", where).WithHint("correct it, or use --%s", name)
	}
	for _, v := range values {
		if err := f.Set(name, v); err != nil {
			return exit.Usagef("%s: %v", where, err).WithHint("correct it, or use --%s", name)
		}
	}
	return nil
}

// LogFields returns all options as fields of a log line, secrets masked.
func (o *Options) LogFields() []zap.Field {
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	c := &Options{}
	c.RegisterFlags(shown)
	*c = *o
	c.Store = setup.MaskPassword(o.Store)
	if o.WorkerKey != "" {
		c.WorkerKey = "xxxxx"
	}
	var list []zap.Field
	shown.VisitAll(func(f *pflag.Flag) {
		if v := f.Value.String(); v != "" && v != "[]" {
			list = append(list, zap.String(f.Name, v))
		}
	})
	return list
}
