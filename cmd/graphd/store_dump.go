package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/dump"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/server"
)

func (p *program) storeDumpCommand() *cobra.Command {
	var o server.Options
	var store storeFlags
	var output string
	cmd := &cobra.Command{
		Use:   "dump THREAD",
		Short: "Print what a store keeps of a thread, as JSON",
		Long: `Print what a store keeps of a thread, one JSON object a line: its head, runs, interrupts, checkpoints, channels,
tasks, memos and events. A line of kind channel is a value, or an element of a list, that is too large for its
checkpoint. It is for what calls don't explain: a server that does not start, a thread that can't be taken up, the
report of a defect. It ends at a record that is damaged, and names it. graphd state, history and watch show a
thread of a running server.

No record is changed, and servers may use the store; a thread that changes meanwhile may show parts of before and
after. SQLite may make the index of the log beside a file. A store of an earlier format is refused: migrate it first. The values of
a run's request are left out, as calls leave them out. An encrypted store needs its keys.`,
		Example: `  graphd store dump order-7 --store sqlite:graphd.db
  graphd store dump order-7 | jq -c 'select(.kind == "event") | .record'`,
		Args: exactArgs("THREAD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "json" {
				return exit.Usagef("-o %q is no form of a dump", output).WithHint("want json")
			}
			name, err := store.parseStore()
			if err != nil {
				return err
			}
			return dumpThread(cmd.Context(), p.Out, &o, name, args[0])
		},
	}
	f := cmd.Flags()
	store.registerFlags(p, f)
	f.StringVar(&o.EncryptionKeys, server.FlagEncryptionKeys, p.envOr("GRAPHD_ENCRYPTION_KEYS", ""),
		"file with the keys of the store, as for serve (env GRAPHD_ENCRYPTION_KEYS)")
	f.StringVarP(&output, "output", "o", "json", "json, one object a line")
	return cmd
}

// dumpThread prints the records of a thread.
func dumpThread(ctx context.Context, w io.Writer, o *server.Options, name server.StoreConfig, thread string) (err error) {
	if err := name.CheckReadable(); err != nil {
		return err
	}
	sealed, err := o.ReadSealOptions(name, zap.NewNop())
	if err != nil {
		return err
	}
	s, err := name.OpenReader(ctx, sealed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	err = dump.WriteThread(ctx, w, s, thread)
	if errors.Is(err, checkpoint.ErrThreadNotFound) {
		return &exit.HintError{
			Err: fmt.Errorf("the store %s has no thread %q", setup.MaskPassword(name.Text), thread), Hint: "graphd threads lists those of a server",
		}
	}
	return err
}
