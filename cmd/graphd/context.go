package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli/contexts"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

// contextCommands manage the contexts of the user.
type contextCommands struct {
	at *connection
	to func() (output.Output, error) // the output of the command, once its flags are read
}

func (p *program) contextCommand() *cobra.Command {
	c := &contextCommands{at: &p.connection, to: p.newOutput}
	cmd := &cobra.Command{
		Use: "context", Short: "Keep servers under names, with what they want of callers", Args: refuseArgs,
		Long: `Keep servers under names, with what they want of callers. --context NAME calls the server of a context, once.
graphd context use NAME has all commands call it that name no other. The file is contexts.yaml, of mode 0600,
in GRAPHD_CONFIG_HOME or else in graphd/ in the user's folder of configurations.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.addCommand(), c.listCommand(), c.useCommand(), c.removeCommand(), c.showCommand())
	return cmd
}

func (c *contextCommands) addCommand() *cobra.Command {
	var tokenFile string
	var force, use bool
	cmd := &cobra.Command{
		Use:   "add NAME --server HOST:PORT",
		Short: "Add a context: the server of --server, called with the other options of calls",
		Long: `Add a context: the server of --server, called with --tls, --tls-ca, --tls-cert, --tls-key, --token and
--tenant. The environment adds nothing. Relative paths are those of this folder. Other users of the host can see
options of a process: prefer --token-file.`,
		Example: `  graphd context add prod --server graphd.example:7700 --tls-ca ca.pem --token-file token --use`,
		Args:    exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !c.at.flags.Changed(flagServer) {
				return exit.Usagef("--server is missing").WithHint("want HOST:PORT")
			}
			given := c.at.readFlags()
			return c.editContexts(cmd.Context(), args[0], func(ctx context.Context, path string) (string, error) {
				err := contexts.AddContext(ctx, path, contexts.Context{
					Name: args[0], Server: c.at.server, TLS: given.SystemRoots, TLSCA: given.CA, TLSCert: given.Cert, TLSKey: given.Key,
					Token: given.Token, TokenFile: tokenFile, Tenant: given.Tenant,
				}, force)
				if err == nil && use {
					err = contexts.UseContext(ctx, path, args[0])
				}
				return "added", err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&tokenFile, "token-file", "", "file with the token, read for each command; in place of --token")
	f.BoolVar(&force, "force", false, "replace a context of this name")
	f.BoolVar(&use, "use", false, "make it the current one, too")
	return cmd
}

// editContexts changes the file of contexts, and says what was done with one.
func (c *contextCommands) editContexts(ctx context.Context, name string, change func(ctx context.Context, path string) (string, error)) error {
	out, err := c.to()
	if err != nil {
		return err
	}
	path, err := c.at.requireContextsFile()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, editTimeout)
	defer cancel()
	did, err := change(ctx, path)
	if err != nil || out.Format != output.Text {
		return err
	}
	return output.WriteLine(out.Out, "%s %s", did, name)
}

func (c *contextCommands) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the contexts; * marks the current one, or that of GRAPHD_CONTEXT",
		Args:  exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			out, err := c.to()
			if err != nil {
				return err
			}
			list, err := c.at.readContexts()
			if err != nil {
				return err
			}
			list.Current = cmp.Or(c.at.getenv("GRAPHD_CONTEXT"), list.Current)
			return printContexts(out, list.ListEntries())
		},
	}
}

func printContexts(out output.Output, all []contexts.Entry) error {
	if out.Format != output.Text {
		return writeList(out, "contexts", all)
	}
	p := out.NewPrinter()
	rows := [][]string{{"", "CONTEXT", "SERVER", "TENANT", "TLS", "TOKEN"}}
	for _, e := range all {
		mark := ""
		if e.IsCurrent {
			mark = "*"
		}
		rows = append(rows, []string{mark, e.Name, e.Server, cmp.Or(e.Tenant, "-"), formatYes(e.TLS), formatYes(e.HasToken)})
	}
	p.PrintTable(rows)
	return p.WriteError()
}

func formatYes(is bool) string {
	if is {
		return "yes"
	}
	return "-"
}

func (c *contextCommands) useCommand() *cobra.Command {
	var none bool
	cmd := &cobra.Command{
		Use:   "use NAME | --none",
		Short: "Have commands that name no server call that of a context",
		Args:  argsBetween(0, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if none == (len(args) == 1) {
				return exit.Usagef("want either NAME or --none").WithHint("graphd context list shows the contexts")
			}
			name, shown := "", "no context"
			if !none {
				name, shown = args[0], args[0]
			}
			return c.editContexts(cmd.Context(), shown, func(ctx context.Context, path string) (string, error) {
				return "commands use", contexts.UseContext(ctx, path, name)
			})
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "have them call the default server again")
	return cmd
}

func (c *contextCommands) removeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a context",
		Args:  exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			wasCurrent := false
			err := c.editContexts(cmd.Context(), args[0], func(ctx context.Context, path string) (did string, err error) {
				wasCurrent, err = contexts.RemoveContext(ctx, path, args[0])
				return "removed", err
			})
			if out, _ := c.to(); err == nil && wasCurrent {
				out.PrintNote("it was the current context: commands use none now")
			}
			return err
		},
	}
}

func (c *contextCommands) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show a context, or that of commands without options; its token is not shown",
		Args:  argsBetween(0, "NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			out, err := c.to()
			if err != nil {
				return err
			}
			list, chosen, err := c.findContext(args)
			if err != nil {
				return err
			}
			return printContext(out, list.DescribeContext(chosen))
		},
	}
}

// findContext returns the context of an argument, or else that of a client command.
// The error is an *exit.UsageError when there is none.
func (c *contextCommands) findContext(args []string) (*contexts.List, *contexts.Context, error) {
	if len(args) == 1 {
		list, err := c.at.readContexts()
		if err != nil {
			return nil, nil, err
		}
		chosen, err := list.FindContext("NAME", args[0])
		return list, chosen, err
	}
	list, chosen, err := c.at.chooseContext()
	if err == nil && chosen == nil {
		err = exit.Usagef("commands use no context").WithHint("choose one with graphd context use NAME, or name one")
	}
	return list, chosen, err
}

func printContext(out output.Output, e contexts.Entry) error {
	if out.Format != output.Text {
		return output.WriteValue(out.Out, out.Format, e)
	}
	token := formatYes(e.HasToken)
	if e.TokenFile != "" {
		token = e.TokenFile
	}
	p := out.NewPrinter()
	for _, row := range [][2]string{
		{"context", e.Name},
		{"current", formatYes(e.IsCurrent)},
		{"server", e.Server},
		{"tls", formatYes(e.TLS)},
		{"tls-ca", e.TLSCA},
		{"tls-cert", e.TLSCert},
		{"tls-key", e.TLSKey},
		{"token", token},
		{"tenant", e.Tenant},
	} {
		p.PrintLine("%-9s %s", row[0], output.OrDash(row[1]))
	}
	return p.WriteError()
}
