package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/server"
)

func (p *program) storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "store", Short: "Dump a store, or migrate or repair it while no server uses it", Args: refuseArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.storeDumpCommand(), p.storeMigrateCommand(), p.storeRepairCommand())
	return cmd
}

// storeFlags are the options that say which store a command opens.
type storeFlags struct {
	store  string
	secure server.RedisTLSOptions
}

// registerFlags registers the options, with defaults of the environment.
func (s *storeFlags) registerFlags(p *program, f *pflag.FlagSet) {
	f.StringVar(&s.store, "store", p.envOr("GRAPHD_STORE", server.DefaultStore), "the store, as for serve (env GRAPHD_STORE)")
	f.StringVar(&s.secure.RedisTLSCert, "redis-tls-cert", p.envOr("GRAPHD_REDIS_TLS_CERT", ""), "as for serve (env GRAPHD_REDIS_TLS_CERT)")
	f.StringVar(&s.secure.RedisTLSKey, "redis-tls-key", p.envOr("GRAPHD_REDIS_TLS_KEY", ""), "as for serve (env GRAPHD_REDIS_TLS_KEY)")
	f.StringVar(&s.secure.RedisTLSCA, "redis-tls-ca", p.envOr("GRAPHD_REDIS_TLS_CA", ""), "as for serve (env GRAPHD_REDIS_TLS_CA)")
}

// parseStore reads the options. The error is an *exit.UsageError.
func (s *storeFlags) parseStore() (server.StoreConfig, error) {
	name, err := server.ParseStore(s.store)
	if err != nil {
		return name, err
	}
	return name.WithRedisTLS(s.secure)
}

func (p *program) storeMigrateCommand() *cobra.Command {
	var store storeFlags
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
			name, err := store.parseStore()
			if err == nil {
				err = name.CheckExists()
			}
			if err != nil {
				return err
			}
			m, err := name.MigrateStore(cmd.Context(), dry, func(m checkpoint.Migration) { printMigration(p.Err, m) })
			if err != nil {
				return err
			}
			for _, warning := range m.Warnings {
				_ = output.WriteLine(p.Err, "warning: %s", warning) // the result says more
			}
			if err := output.WriteLine(p.Out, "%s", migrationText(m, dry)); err != nil || len(m.Unreadable) == 0 {
				return err
			}
			return output.WriteLine(p.Out, "%s", unreadableText(&m))
		},
	}
	store.registerFlags(p, cmd.Flags())
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what there is to do")
	return cmd
}

// unreadableText names the threads with records that can't be read, and the first of the
// records.
func unreadableText(m *checkpoint.Migration) string {
	return strings.Join(append([]string{"left as they were, since they can't be read: " + strings.Join(m.Unreadable, ", ")},
		m.UnreadableRecords...), "\n  ")
}

func printMigration(w io.Writer, m checkpoint.Migration) {
	_ = output.WriteLine(w, "%d of %d threads", m.Done, m.Threads) // an error must not stop the migration
}

// migrationText describes a migration in a sentence.
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

func (p *program) storeRepairCommand() *cobra.Command {
	var store storeFlags
	var accept bool
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Show what a store on Redis has lost, and go on without it",
		Long: `Show what a store on Redis has lost. With --accept-loss, make the store usable again: the missing parts begin
anew, without their threads. Nothing is deleted. Restore a backup instead, if there is one.`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := store.parseStore()
			if err != nil {
				return err
			}
			loss, err := name.RepairStore(cmd.Context(), accept)
			if err != nil {
				return err
			}
			return printLoss(p.Out, loss, accept)
		},
	}
	store.registerFlags(p, cmd.Flags())
	cmd.Flags().BoolVar(&accept, "accept-loss", false, "go on without what is lost")
	return cmd
}

// printLoss prints the missing records of a store, and how the command treated
// them.
func printLoss(w io.Writer, loss checkpoint.Loss, accepted bool) error {
	if !loss.MetadataLost && len(loss.LostPartitions) == 0 {
		return output.WriteLine(w, "nothing is missing")
	}
	var all []error
	say := func(format string, args ...any) {
		all = append(all, output.WriteLine(w, format, args...))
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
