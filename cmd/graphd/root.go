package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/report"
)

// executeCommand runs the command line and returns the exit code.
func (p *program) executeCommand(ctx context.Context, args []string) int {
	root := p.newRootCommand()
	root.SetArgs(args)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exit.CodeDone
	}
	err = classifyError(cmd, err)
	format, bad := output.ParseFormat(p.outputFormat)
	if bad != nil {
		format = output.Text
	}
	self := p.newInvocation()
	self.Verb = strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	report.PrintError(p.Err, err, format, p.connection.server, self)
	return exit.CodeOf(err)
}

// classifyError makes the errors of cobra, which have no type, usage errors: an
// error before a command begins is an error of the command line.
func classifyError(cmd *cobra.Command, err error) error {
	var usage *exit.UsageError
	if errors.As(err, &usage) && usage.Hint != "" {
		return err
	}
	message, found := err.Error(), errors.As(err, &usage)
	if !found && !strings.HasPrefix(message, "unknown command") && !strings.HasPrefix(message, "required flag") {
		return err
	}
	return exit.Usagef("%s", strings.ReplaceAll(strings.TrimSpace(message), "\n\t", " ")).
		WithHint("see `%s --help`", cmd.CommandPath())
}

func (p *program) newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "graphd",
		Short: "Run stateful graphs that ask people and go on where they stopped",
		Long: `graphd runs stateful graphs as a service: superstep by superstep, every one stored,
and paused for as long as a person takes to answer.

Exit codes: 0 done, 1 error, 2 wrong command line, 3 waiting for a person, 4 the run failed.`,
		SilenceErrors: true, SilenceUsage: true,
		Args:               refuseArgs,
		RunE:               func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		DisableAutoGenTag:  true,
		DisableSuggestions: false,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.Usagef("%v", err).WithHint("%s", flagHint(cmd, err))
	})
	flags := root.PersistentFlags()
	p.connection.registerFlags(flags, p.getenv, p.configHome)
	flags.StringVarP(&p.outputFormat, "output", "o", "text", "text for people, json or jsonl for programs")
	root.AddGroup(
		&cobra.Group{ID: groupServer, Title: "Server:"},
		&cobra.Group{ID: groupRun, Title: "Run graphs:"},
		&cobra.Group{ID: groupInspect, Title: "Look and change:"},
	)
	for group, list := range map[string][]*cobra.Command{
		groupServer: {
			p.serveCommand(), p.devCommand(), p.demoCommand(), p.healthCommand(), p.storeCommand(), p.certsCommand(), p.keysCommand(),
			p.contextCommand(),
		},
		groupRun: {p.runCommand(), p.resumeCommand(), p.watchCommand(), p.cancelCommand()},
		groupInspect: {
			p.inboxCommand(), p.stateCommand(), p.historyCommand(), p.threadsCommand(), p.cronsCommand(),
			p.updateCommand(), p.graphCommand(), newAuditCommand(p),
		},
	} {
		for _, c := range list {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	root.AddCommand(p.versionCommand())
	p.addCompletions(root)
	return root
}

// Groups of the help.
const (
	groupServer  = "server"
	groupRun     = "run"
	groupInspect = "look"
)
