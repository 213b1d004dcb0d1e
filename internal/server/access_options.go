package server

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity/file"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/transport/permission"
)

// AccessOptions say what callers may do. They count only where callers are known.
type AccessOptions struct {
	Access string
}

// RegisterFlags registers the options.
func (o *AccessOptions) RegisterFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Access, "access", "",
		"YAML file that binds roles to callers; read again when it changes (default: callers have the roles of their credentials)")
}

// validateAccess returns an *exit.UsageError for a file that would have no effect.
func (o *Options) validateAccess() error {
	if o.Access == "" || o.KnowsCallers() {
		return nil
	}
	return exit.Usagef("--access needs a way to know who calls").
		WithHint("give --api-keys, --token-issuers or --certificate-rules")
}

// accessPolicy is the policy of a server, which may follow a file.
type accessPolicy struct {
	value  func() *access.Policy
	follow func(ctx context.Context) // until ctx ends; nil = the policy does not change
}

// openPolicy reads the policy. Without a file, callers have the roles of their
// credentials. The error is an *exit.UsageError.
func (o *AccessOptions) openPolicy(every time.Duration, log *zap.Logger) (*accessPolicy, error) {
	if o.Access == "" {
		fixed := access.NewPolicy()
		return &accessPolicy{value: func() *access.Policy { return fixed }}, nil
	}
	parse := func(text []byte) (*access.Policy, error) { return access.Parse(o.Access, text) }
	report := func(err error) {
		log.Error("the policy of --access can't be read again", zap.String("file", o.Access), zap.Error(err))
	}
	policy, err := file.Load(o.Access, parse, report)
	if err != nil {
		return nil, exit.Usagef("--access: %v", err).WithHint("correct the file; docs/roles.md describes it")
	}
	policy.ReportChanges(func() { log.Info("the policy of --access has changed and is in use", zap.String("file", o.Access)) })
	return &accessPolicy{value: policy.Value, follow: func(ctx context.Context) { policy.WatchFile(ctx, every) }}, nil
}

// newAuthorizer makes what decides about calls.
func (p *accessPolicy) newAuthorizer(e *engine.Engine) (*permission.Authorizer, error) {
	return permission.New(permission.Options{Policy: p.value, Threads: threadGraphs{e}, Now: e.Now})
}

// threadGraphs reads the graphs of threads.
type threadGraphs struct{ engine *engine.Engine }

// ReadGraph returns the name of the graph of a thread.
func (t threadGraphs) ReadGraph(ctx context.Context, thread string) (string, error) {
	head, err := t.engine.Thread(ctx, thread)
	return head.Graph, err
}
