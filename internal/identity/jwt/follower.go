package jwt

import (
	"context"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/file"
)

// Follower verifies tokens of the issuers in a file, which it reads again when they
// change. Its methods may be called at the same time.
type Follower struct {
	opts      Options
	verifiers *file.Reloaded[*Verifier]
}

// OpenFile reads the issuers of a file; those in opts.Config do not count. opts.Report
// is also called once for each change of the file that can't be used, and the issuers
// before stay. The error joins a *file.Error for each problem.
func OpenFile(path string, opts Options) (*Follower, error) {
	f := &Follower{opts: opts}
	var err error
	f.verifiers, err = file.Load(path, func(text []byte) (*Verifier, error) {
		config, err := Parse(path, text)
		if err != nil {
			return nil, err
		}
		return f.newVerifier(config)
	}, opts.Report)
	return f, err
}

// newVerifier makes a Verifier. Issuers that stay keep the keys that they have.
func (f *Follower) newVerifier(config Config) (*Verifier, error) {
	opts := f.opts
	opts.Config = config
	if f.verifiers == nil {
		return New(opts)
	}
	return newVerifier(opts, f.verifiers.Value().issuers)
}

// ReportChanges has changed called after each change of the issuers.
func (f *Follower) ReportChanges(changed func()) { f.verifiers.ReportChanges(changed) }

// Run checks the file at an interval, and fetches and renews the keys of its issuers,
// until ctx ends.
func (f *Follower) Run(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		f.runVerifier(ctx, f.verifiers.Value(), ticker.C)
	}
}

// runVerifier runs a Verifier until the file has another one, or ctx ends. Its keys
// are renewed by one goroutine at a time, also those that the next one takes over.
func (f *Follower) runVerifier(ctx context.Context, v *Verifier, tick <-chan time.Time) {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(contain.Func(func() { v.Run(ctx) }, func(p *contain.PanicError) { f.opts.Report(p) }))
	for f.verifiers.Value() == v {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			f.verifiers.CheckFile()
		}
	}
}

// Authenticate returns the principal of a token. The errors are those of a Verifier.
func (f *Follower) Authenticate(ctx context.Context, given identity.Credentials) (identity.Principal, error) {
	return f.verifiers.Value().Authenticate(ctx, given)
}
