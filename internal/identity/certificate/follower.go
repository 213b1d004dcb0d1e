package certificate

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/file"
)

// Follower maps certificates by the rules of a file, which it reads again when they
// change. Its methods may be called at the same time.
type Follower struct {
	mappers *file.Reloaded[*Mapper]
}

// OpenFile reads the rules of a file, which give no other roles than these. report is
// called once for each change of the file that can't be used, and the rules before stay.
// The error joins a *file.Error for each problem.
func OpenFile(path string, roles []string, report func(error)) (*Follower, error) {
	mappers, err := file.Load(path, func(text []byte) (*Mapper, error) {
		config, err := Parse(path, text, roles)
		if err != nil {
			return nil, err
		}
		return New(config), nil
	}, report)
	return &Follower{mappers}, err
}

// ReportChanges has changed called after each change of the rules.
func (f *Follower) ReportChanges(changed func()) { f.mappers.ReportChanges(changed) }

// WatchFile checks the file at an interval until ctx ends.
func (f *Follower) WatchFile(ctx context.Context, every time.Duration) {
	f.mappers.WatchFile(ctx, every)
}

// Authenticate returns the principal of a certificate. The errors are those of a Mapper.
func (f *Follower) Authenticate(ctx context.Context, given identity.Credentials) (identity.Principal, error) {
	return f.mappers.Value().Authenticate(ctx, given)
}
