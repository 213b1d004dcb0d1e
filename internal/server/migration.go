package server

import (
	"context"
	"fmt"
	"os"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// CheckExists returns an error for a store that does not exist, because its operator
// means another store.
func (sc StoreConfig) CheckExists() error {
	switch sc.Kind {
	case kindMemory:
		return exit.Usagef("--store memory ends with its server; there is nothing to migrate").
			WithHint("name the store of the server: --store sqlite:PATH or redis://HOST:PORT/DB")
	case KindRedis:
		return nil // an empty Redis can be opened
	}
	if _, err := os.Stat(sc.path); err != nil {
		return &exit.HintError{
			Err:  fmt.Errorf("the store %s can't be opened: %w", sc.Text, err),
			Hint: "name the file that the server uses: --store sqlite:PATH",
		}
	}
	return nil
}

// MigrateStore brings the store to the present format. Errors: *exit.UsageError and
// *exit.HintError.
func (sc StoreConfig) MigrateStore(
	ctx context.Context, dry bool, tell func(checkpoint.Migration),
) (m checkpoint.Migration, err error) {
	switch sc.Kind {
	case kindMemory:
		return m, nil
	case KindRedis:
		opts, err := sc.newRedisOptions(zap.NewNop())
		if err != nil {
			return m, err
		}
		m, err = setup.Migrate(ctx, opts, dry, tell)
		return m, explainRedisError(err)
	}
	m, err = sqlite.Migrate(ctx, sqlite.Options{Path: sc.path}, dry, tell)
	if err != nil {
		return m, explainSQLiteError(sc.Text, err)
	}
	return m, nil
}

// migrateAndOpen opens the store, and migrates it before if the options ask for it.
func (o *Options) migrateAndOpen(
	ctx context.Context, name StoreConfig, log *zap.Logger, sealed seal.Options,
) (Store, error) {
	if o.Migrate {
		if err := name.migrateBeforeServing(ctx, log); err != nil {
			return nil, err
		}
	}
	return name.OpenStore(ctx, log, sealed)
}

// migrateBeforeServing brings the store to the present format before a server opens it.
func (sc StoreConfig) migrateBeforeServing(ctx context.Context, log *zap.Logger) error {
	m, err := sc.MigrateStore(ctx, false, logMigration(log))
	if err == nil && m.From != m.To {
		log.Info("store was migrated", zap.Int("from", m.From), zap.Int("to", m.To), zap.Strings("unreadable", m.Unreadable))
	}
	logWarnings(log, m.Warnings)
	if len(m.Unreadable) > 0 {
		log.Warn("records can't be read and were left as they are",
			zap.Int("threads", len(m.Unreadable)), zap.Strings("unreadable", m.UnreadableRecords))
	}
	return err
}

// logMigration logs the progress of a migration.
func logMigration(log *zap.Logger) func(checkpoint.Migration) {
	return func(m checkpoint.Migration) {
		log.Info("store is being migrated", zap.Int("done", m.Done), zap.Int("threads", m.Threads))
	}
}

// RepairStore returns the records that a store on Redis has lost. With accept it
// makes the store usable without them. Errors: *exit.UsageError and
// *exit.HintError.
func (sc StoreConfig) RepairStore(ctx context.Context, accept bool) (checkpoint.Loss, error) {
	if sc.Kind != KindRedis {
		return checkpoint.Loss{}, exit.Usagef("--store %s is not on Redis", sc.Text).WithHint("a file that is damaged is restored from a backup")
	}
	opts, err := sc.newRedisOptions(zap.NewNop())
	if err != nil {
		return checkpoint.Loss{}, err
	}
	loss, err := setup.Repair(ctx, opts, accept)
	return loss, explainRedisError(err)
}

// CheckReadable returns an error for a store that can't be there. OpenReader
// reports whether an existing store can be read.
func (sc StoreConfig) CheckReadable() error {
	switch sc.Kind {
	case kindMemory:
		return exit.Usagef("--store memory ends with its server; there is nothing to dump").
			WithHint("name the store of the server: --store sqlite:PATH or redis://HOST:PORT/DB")
	case KindRedis:
		return nil
	}
	return sc.CheckExists()
}
