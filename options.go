package graphd

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"

	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/server"
)

// Options change an engine. The zero value is that of a server.
type Options struct {
	// Log takes what the engine has to say; nil = nothing is said.
	Log *slog.Logger
	// Functions and Reducers are those that graph files name, which --graphs in Args loads.
	Functions graph.Functions
	Reducers  map[string]graph.Reduce
	// Args are options of graphd serve, as docs/cli.md has them: "--max-live-runs=100". Those of the
	// store, of the log and of --listen are refused: Open, Log and [Engine.Serve] take their place.
	Args []string
	// Getenv is asked for the options that Args leave out, like GRAPHD_LEASE, for secrets, and for the
	// variables OTEL_… that switch traces on. nil = the environment counts for nothing.
	Getenv func(string) string
}

// OptionError says which option of an engine is wrong.
type OptionError struct {
	Reason string
	Remedy string // "" = the reason says it
}

// Error has the reason, and what would be right.
func (e *OptionError) Error() string {
	if e.Remedy == "" {
		return "graphd: " + e.Reason
	}
	return "graphd: " + e.Reason + ": " + e.Remedy
}

// replacedFlags are options of a server that an engine has in another way.
func replacedFlags() map[string]string {
	return map[string]string{
		"store": "the store of Open", "listen": "Engine.Serve",
		"log-level": "the level of Options.Log", "log-format": "the handler of Options.Log",
	}
}

// serverOptions returns the options of a server on a store.
func (o *Options) serverOptions(store Store) (*server.Options, error) {
	if err := store.check(); err != nil {
		return nil, err
	}
	all := &server.Options{}
	flags := pflag.NewFlagSet("engine", pflag.ContinueOnError)
	flags.Usage = func() {}
	all.RegisterFlags(flags)
	if err := flags.Parse(o.Args); err != nil {
		return nil, &OptionError{Reason: "Args: " + err.Error(), Remedy: "want options of graphd serve, like --max-live-runs=100"}
	}
	if flags.NArg() > 0 {
		return nil, &OptionError{Reason: fmt.Sprintf("Args have %q, which is no option", flags.Arg(0)), Remedy: "want options with their values, like --max-live-runs=100"}
	}
	for name, instead := range replacedFlags() {
		if flags.Changed(name) {
			return nil, &OptionError{Reason: fmt.Sprintf("Args have --%s, which an engine does not take", name), Remedy: "use " + instead}
		}
	}
	if err := flags.Set("store", store.text); err != nil {
		return nil, err
	}
	getenv := o.Getenv
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	return all, explainOption(all.CompleteOptions(flags, getenv))
}

// explainOption makes an *OptionError of an error of the command line, whose hint is no part of its
// text.
func explainOption(err error) error {
	if usage, ok := errors.AsType[*exit.UsageError](err); ok {
		return &OptionError{Reason: usage.Message, Remedy: nameStores(usage.Hint)}
	}
	if hinted, ok := errors.AsType[*exit.HintError](err); ok {
		return fmt.Errorf("%w: %s", hinted.Err, nameStores(hinted.Hint))
	}
	return err
}

// check refuses a store that can't be one.
func (s Store) check() error {
	switch kind, rest, _ := strings.Cut(s.text, ":"); {
	case s.text == "":
		return &OptionError{Reason: "there is no store", Remedy: `want Memory(), SQLite("app.db") or Redis(url)`}
	case s.isRedis && kind != "redis" && kind != "rediss":
		return &OptionError{Reason: "the URL of Redis is none", Remedy: "want one like redis://127.0.0.1:6379/0, or rediss:// for TLS"}
	case kind == "sqlite" && rest == "":
		return &OptionError{Reason: "SQLite has no path", Remedy: `want a file, like SQLite("app.db")`}
	}
	return nil
}

// nameStores returns a text in which stores are those of Open, and not the option of a server.
func nameStores(text string) string {
	return strings.NewReplacer(
		"with --store sqlite:PATH", "with graphd.SQLite(PATH)",
		"with --store redis://HOST:PORT/DB", `with graphd.Redis("redis://HOST:PORT/DB")`,
		"with --store rediss://HOST:PORT/DB", `with graphd.Redis("rediss://HOST:PORT/DB")`,
	).Replace(text)
}
