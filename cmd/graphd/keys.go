package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/keys"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/shell"
)

// keyFile is the file of API keys that a command manages.
type keyFile struct {
	path string
	to   func() (output.Output, error) // the output of the command, once its flags are read
	self shell.Invocation
}

// editTimeout is how long a command waits while another one changes its file.
const editTimeout = 10 * time.Second

func (p *program) keysCommand() *cobra.Command {
	k := &keyFile{to: p.newOutput, self: shell.Invocation{Program: p.invocation}}
	cmd := &cobra.Command{
		Use: "keys", Short: "Make, list and revoke API keys, by which servers know callers", Args: refuseArgs,
		Long: `Make, list and revoke API keys, by which servers know callers. The file has a hash of each key, not its token.
Servers read it again when it changes.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []*cobra.Command{k.createCommand(), k.listCommand(), k.revokeCommand()} {
		sub.Flags().StringVar(&k.path, "file", p.envOr("GRAPHD_API_KEYS", ""), "file of the keys (env GRAPHD_API_KEYS)")
		cmd.AddCommand(sub)
	}
	return cmd
}

func (k *keyFile) createCommand() *cobra.Command {
	var r keys.CreateRequest
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a key and print its token, once",
		Long: `Make a key and print its token, once. The token alone goes to standard output, all else to standard error.
The file, of mode 0600, is made if there is none. Roles of a key count in its first tenant. In its other tenants, and
for some graphs only, give the key a name or a group that a policy binds roles to (serve --access).`,
		Example: `  TOKEN=$(graphd keys create --file keys.yaml --name alice --role answerer --tenant finance)
  graphd keys create --file keys.yaml --name ci --role author --expires 12h
  (umask 077; graphd keys create --file keys.yaml --name bob --group officers --tenant finance >bob.token)`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := k.to()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), editTimeout)
			defer cancel()
			made, err := keys.CreateKey(ctx, k.path, r, time.Now())
			if err != nil {
				return err
			}
			if err := k.printCreated(out, made); err != nil {
				return &exit.HintError{
					Err:  fmt.Errorf("the token can't be printed: %w", err),
					Hint: "the key exists: revoke it with `" + k.revokeCall(made.Key) + "`, and make another",
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Name, "name", "", "who calls with the key; records and logs show it")
	f.StringSliceVar(&r.Roles, "role", nil, "role of the caller: "+strings.Join(keys.ListRoles(), ", ")+" (repeatable)")
	f.StringArrayVar(&r.Groups, "group", nil, "group of the caller (repeatable)")
	f.StringArrayVar(&r.Tenants, "tenant", nil, "tenant whose data the caller may use; the first is that of calls that name none (repeatable)")
	f.StringVar(&r.Expires, "expires", "90d", "until when the key is valid: a duration like 90d or 12h, a time like 2027-01-31T12:00:00Z, or never")
	cobra.CheckErr(cmd.MarkFlagRequired("name"))
	return cmd
}

// printCreated prints the token, alone on Out unless a program asks for more.
func (k *keyFile) printCreated(out output.Output, made keys.Created) error {
	if out.Format != output.Text {
		return output.WriteValue(out.Out, out.Format, made)
	}
	if err := output.WriteLine(out.Out, "%s", made.Token); err != nil {
		return err
	}
	out.PrintNote("key %s of %s, roles %s, groups %s, tenants %s, expires %s", made.Key.Prefix, made.Key.Name,
		joinNames(made.Key.Roles), joinNames(made.Key.Groups), joinNames(made.Key.Tenants), formatExpiry(made.Key))
	out.PrintNote("The token is not shown again. To revoke it: %s", k.revokeCall(made.Key))
	return nil
}

func (k *keyFile) revokeCall(e keys.Entry) string {
	return k.self.CommandLine("keys", "revoke", e.Prefix, "--file", k.path)
}

func (k *keyFile) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the keys of a file, and whether they are valid",
		Args:  exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			out, err := k.to()
			if err != nil {
				return err
			}
			all, err := keys.ListKeys(k.path, time.Now())
			if err != nil {
				return err
			}
			return printKeys(out, all)
		},
	}
}

func printKeys(out output.Output, all []keys.Entry) error {
	if out.Format != output.Text {
		return writeList(out, "keys", all)
	}
	p := out.NewPrinter()
	rows := [][]string{{"KEY", "NAME", "ROLES", "GROUPS", "TENANTS", "CREATED", "EXPIRES", "STATE"}}
	for _, e := range all {
		rows = append(rows, []string{
			e.Prefix, e.Name, joinNames(e.Roles), joinNames(e.Groups), joinNames(e.Tenants),
			output.FormatTime(timestamppb.New(e.Created)), formatExpiry(e), string(e.State),
		})
	}
	p.PrintTable(rows)
	return p.WriteError()
}

func (k *keyFile) revokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke KEY",
		Short:   "Revoke a key for good; KEY is its prefix, its id or the token",
		Example: `  graphd keys revoke gk_3k9x0a7cq2mz --file keys.yaml`,
		Args:    exactArgs("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := k.to()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), editTimeout)
			defer cancel()
			e, err := keys.RevokeKey(ctx, k.path, args[0], time.Now())
			if err != nil {
				return err
			}
			if out.Format != output.Text {
				return output.WriteValue(out.Out, out.Format, e)
			}
			return output.WriteLine(out.Out, "key %s of %s is revoked since %s", e.Prefix, e.Name, output.FormatTime(timestamppb.New(e.Revoked)))
		},
	}
}

// writeList writes a list as one document with a name for it, or its elements one
// per line.
func writeList[T any](out output.Output, name string, all []T) error {
	if out.Format == output.JSON {
		return output.WriteValue(out.Out, out.Format, map[string][]T{name: all})
	}
	for _, value := range all {
		if err := output.WriteValue(out.Out, out.Format, value); err != nil {
			return err
		}
	}
	return nil
}

func joinNames(names []string) string { return output.OrDash(strings.Join(names, ",")) }

func formatExpiry(e keys.Entry) string {
	if e.Expires.IsZero() {
		return keys.Never
	}
	return output.FormatTime(timestamppb.New(e.Expires))
}
