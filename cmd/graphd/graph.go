package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/schema"
)

func (p *program) graphCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "graph", Short: "List, show, check, draw and put graphs", Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the graphs of the server", Args: exactly(),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return p.session(func(s *cli.Session) error { return s.ListGraphs(cmd.Context()) })
			},
		},
		&cobra.Command{
			Use: "show NAME[@VERSION]", Short: "Show a graph of the server", Args: exactly("NAME"),
			RunE: func(cmd *cobra.Command, args []string) error {
				return p.session(func(s *cli.Session) error { return s.ShowGraph(cmd.Context(), args[0]) })
			},
		},
		&cobra.Command{
			Use: "put FILE", Short: "Send a graph file to the server, which checks and keeps it", Args: exactly("FILE"),
			RunE: func(cmd *cobra.Command, args []string) error {
				return p.session(func(s *cli.Session) error { return s.PutGraph(cmd.Context(), args[0]) })
			},
		},
		p.graphCheckCommand(), p.graphDrawCommand(),
	)
	return cmd
}

func (p *program) graphCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE...",
		Short: "Check graph files; no server is needed",
		Long: `Check graph files and report everything that is wrong, with its line. Files that use each other as
subgraphs are checked together. No server is needed.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactly("FILE")(cmd, args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := p.checkFiles(args); err != nil {
				return fmt.Errorf("the graphs are wrong\n%w", err)
			}
			return nil
		},
	}
}

func (p *program) checkFiles(paths []string) error {
	var files []graphfile.File
	var all []error
	for _, path := range paths {
		file, err := graphfile.Read(path)
		if err != nil {
			all = append(all, err)
			continue
		}
		files = append(files, file)
	}
	env, err := compileEnv(schema.New(0))
	if err != nil {
		return err
	}
	good, err := graphfile.CompileAll(files, env)
	for _, g := range good {
		if _, err := fmt.Fprintf(p.Out, "ok  %s  version %s\n", g.Name, g.Version); err != nil {
			return err
		}
	}
	return errors.Join(append(all, err)...)
}
