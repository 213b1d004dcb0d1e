package memory

import (
	"context"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

var _ checkpoint.Secrets = (*Store)(nil)

// secrets are kept by name.
type secrets struct {
	mu     sync.Mutex
	byName map[string]string
}

// Secret returns the secret of a name.
func (s *Store) Secret(ctx context.Context, name, offer string) (string, error) {
	if err := s.checkOpen(ctx); err != nil {
		return "", err
	}
	s.secrets.mu.Lock()
	defer s.secrets.mu.Unlock()
	if known, ok := s.secrets.byName[name]; ok {
		return known, nil
	}
	if s.secrets.byName == nil {
		s.secrets.byName = make(map[string]string, 1)
	}
	s.secrets.byName[name] = offer
	return offer, nil
}
