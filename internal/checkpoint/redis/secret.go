package redis

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

var _ checkpoint.Secrets = (*Store)(nil)

const secretPrefix = "secret:"

// Secret returns the secret of a name.
func (s *Store) Secret(ctx context.Context, name, offer string) (string, error) {
	done, err := s.enter(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	if err := s.agreed(ctx); err != nil { // nothing is put into another store
		return "", failed(ctx, err)
	}
	var secret string
	err = again(ctx, func() error {
		if err := s.client.HSetNX(ctx, s.keys.meta(), secretPrefix+name, offer).Err(); err != nil {
			return err
		}
		var err error
		secret, err = s.client.HGet(ctx, s.keys.meta(), secretPrefix+name).Result()
		return err
	})
	return secret, failed(ctx, err)
}
