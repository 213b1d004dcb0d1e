package redis

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
)

var _ checkpoint.Secrets = (*Store)(nil)

const secretPrefix = "secret:"

// Secret returns the secret of a name.
func (s *Store) Secret(ctx context.Context, name, offer string) (string, error) {
	done, err := s.beginCall(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	if err := s.database.CheckMetadata(ctx); err != nil { // nothing is put into another store
		return "", script.ToContractError(ctx, err)
	}
	var secret string
	err = script.Retry(ctx, func() error {
		if err := s.database.Client.HSetNX(ctx, s.database.Keys.MetadataKey(), secretPrefix+name, offer).Err(); err != nil {
			return err
		}
		var err error
		secret, err = s.database.Client.HGet(ctx, s.database.Keys.MetadataKey(), secretPrefix+name).Result()
		return err
	})
	return secret, script.ToContractError(ctx, err)
}
