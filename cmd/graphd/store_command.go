package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

func (p *program) storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "store", Short: "Migrate, repair and dump a store, while no server uses it", Args: refuseArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.storeDumpCommand(), p.storeMigrateCommand(), p.storeRepairCommand())
	return cmd
}

func (p *program) storeMigrateCommand() *cobra.Command {
	var store string
	var dry bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring a store of an earlier graphd to the format of this one",
		Long: `Bring a store of an earlier graphd to the format of this one. Stop all servers that use the store, and make
a backup: there is no way back. Call it again after an interruption. It needs no encryption
keys: encrypted records of a file are written anew by the first server that has their keys, before it serves.
serve --migrate does the same before it serves.`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := parseStore(store)
			if err == nil {
				err = name.checkExists()
			}
			if err != nil {
				return err
			}
			m, err := name.migrateStore(cmd.Context(), dry, p.printMigration)
			if err != nil {
				return err
			}
			if err := output.WriteLine(p.Out, "%s", migrationText(m, dry)); err != nil || len(m.Unreadable) == 0 {
				return err
			}
			return output.WriteLine(p.Out, "left as they were, since they can't be read: %s", strings.Join(m.Unreadable, ", "))
		},
	}
	cmd.Flags().StringVar(&store, "store", p.envOr("GRAPHD_STORE", defaultStore), "the store, as for serve (env GRAPHD_STORE)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what there is to do")
	return cmd
}

func (p *program) printMigration(m checkpoint.Migration) {
	_ = output.WriteLine(p.Err, "%d of %d threads", m.Done, m.Threads) // the migration goes on unseen
}

// migrationText says in a sentence what a migration did.
func migrationText(m checkpoint.Migration, dry bool) string {
	switch m.From {
	case 0:
		return "nothing to do: nothing is stored there yet"
	case m.To:
		return fmt.Sprintf("nothing to do: the store has format %d, which this graphd writes", m.To)
	}
	did := "migrated"
	if dry {
		did = "to migrate"
	}
	return fmt.Sprintf("%s: the store from format %d to %d, with %d threads, of which %d have records to write anew",
		did, m.From, m.To, m.Threads, m.Changed)
}

// checkExists refuses a store that can't be there to be migrated: an operator who
// names one has named another than was meant.
func (n storeConfig) checkExists() error {
	switch n.kind {
	case kindMemory:
		return exit.Usagef("--store memory ends with its server; there is nothing to migrate").
			WithHint("name the store of the server: --store sqlite:PATH or redis://HOST:PORT/DB")
	case kindRedis:
		return nil // an empty one answers
	}
	if _, err := os.Stat(n.path); err != nil {
		return &exit.HintError{
			Err:  fmt.Errorf("the store %s can't be opened: %w", n.text, err),
			Hint: "name the file that the server uses: --store sqlite:PATH",
		}
	}
	return nil
}

// migrateStore brings the store to the present format.
func (n storeConfig) migrateStore(
	ctx context.Context, dry bool, tell func(checkpoint.Migration),
) (m checkpoint.Migration, err error) {
	switch n.kind {
	case kindMemory:
		return m, nil
	case kindRedis:
		m, err = setup.Migrate(ctx, redis.Options{URL: n.text}, dry, tell)
		return m, explainRedisError(err)
	}
	m, err = sqlite.Migrate(ctx, sqlite.Options{Path: n.path}, dry, tell)
	if err != nil {
		return m, explainSQLiteError(n.text, err)
	}
	return m, nil
}

// migrateAndOpen opens the store, after it was migrated when that is wanted.
func (o *serverOptions) migrateAndOpen(
	ctx context.Context, name storeConfig, log *zap.Logger, sealed seal.Options,
) (store, error) {
	if o.Migrate {
		if err := name.migrateBeforeServing(ctx, log); err != nil {
			return nil, err
		}
	}
	return name.openStore(ctx, log, sealed)
}

// migrateBeforeServing brings the store to the present format before a server opens it.
func (n storeConfig) migrateBeforeServing(ctx context.Context, log *zap.Logger) error {
	m, err := n.migrateStore(ctx, false, logMigration(log))
	if err == nil && m.From != m.To {
		log.Info("store was migrated", zap.Int("from", m.From), zap.Int("to", m.To), zap.Strings("unreadable", m.Unreadable))
	}
	return err
}

// logMigration logs how far a migration is.
func logMigration(log *zap.Logger) func(checkpoint.Migration) {
	return func(m checkpoint.Migration) {
		log.Info("store is being migrated", zap.Int("done", m.Done), zap.Int("threads", m.Threads))
	}
}

// repairStore says what a store on Redis has lost, and with accept makes it usable
// without that.
func (n storeConfig) repairStore(ctx context.Context, accept bool) (checkpoint.Loss, error) {
	if n.kind != kindRedis {
		return checkpoint.Loss{}, exit.Usagef("--store %s is not on Redis", n.text).WithHint("a file that is damaged is restored from a backup")
	}
	loss, err := setup.Repair(ctx, redis.Options{URL: n.text}, accept)
	return loss, explainRedisError(err)
}

func (p *program) storeRepairCommand() *cobra.Command {
	var store string
	var accept bool
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Show what a store on Redis has lost, and go on without it",
		Long: `Show what a store on Redis has lost. With --accept-loss, make the store usable again: the missing parts begin
anew, without their threads. Nothing is deleted. Restore a backup instead, if there is one.`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := parseStore(store)
			if err != nil {
				return err
			}
			loss, err := name.repairStore(cmd.Context(), accept)
			if err != nil {
				return err
			}
			return p.printLoss(loss, accept)
		},
	}
	cmd.Flags().StringVar(&store, "store", p.envOr("GRAPHD_STORE", defaultStore), "the store, as for serve (env GRAPHD_STORE)")
	cmd.Flags().BoolVar(&accept, "accept-loss", false, "go on without what is lost")
	return cmd
}

// printLoss prints what is missing of a store, and what the command did about it.
func (p *program) printLoss(loss checkpoint.Loss, accepted bool) error {
	if !loss.MetadataLost && len(loss.LostPartitions) == 0 {
		return output.WriteLine(p.Out, "nothing is missing")
	}
	var all []error
	say := func(format string, args ...any) {
		all = append(all, output.WriteLine(p.Out, format, args...))
	}
	if loss.MetadataLost {
		say("missing: what the whole store agrees on, and perhaps graphs; put those back with graphd graph put, serve --graphs or workers")
	}
	if len(loss.LostPartitions) > 0 {
		say("missing: %d of %d parts, with all their threads: %s", len(loss.LostPartitions), loss.PartitionCount, strings.Join(loss.LostPartitions, ", "))
	}
	if accepted {
		say("the store can be used again, without that")
		return errors.Join(all...)
	}
	return errors.Join(append(all, &exit.HintError{
		Err: errors.New("the store can't be used"), Hint: "restore a backup, or go on without what is missing: add --accept-loss",
	})...)
}
