package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/schema"
	"github.com/graphd-dev/graphd/internal/server"
)

func (p *program) graphCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "graph", Short: "List, show, check, draw, put and delete graphs", Args: refuseArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the graphs of the server", Args: exactArgs(),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return p.withSession(func(s *cli.Session) error { return s.ListGraphs(cmd.Context()) })
			},
		},
		&cobra.Command{
			Use: "show NAME[@VERSION]", Short: "Show a graph of the server", Args: exactArgs("NAME"),
			RunE: func(cmd *cobra.Command, args []string) error {
				return p.withSession(func(s *cli.Session) error { return s.ShowGraph(cmd.Context(), args[0]) })
			},
		},
		&cobra.Command{
			Use: "put FILE", Short: "Send a graph file to the server, which checks and keeps it", Args: exactArgs("FILE"),
			RunE: func(cmd *cobra.Command, args []string) error {
				if err := refuseFolder(args[0]); err != nil {
					return err
				}
				return p.withSession(func(s *cli.Session) error { return s.PutGraph(cmd.Context(), args[0]) })
			},
		},
		p.graphDeleteCommand(), p.graphCheckCommand(), p.graphDrawCommand(),
	)
	return cmd
}

func (p *program) graphDeleteCommand() *cobra.Command {
	var version string
	var force bool
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a graph of the server, or one version of it", Args: exactArgs("NAME"),
		Long: `Delete a graph of the server, or one version of it. It is refused while threads run a version or other
graphs contain it. With --force these threads and graphs stand still until the same version is put again.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(func(s *cli.Session) error { return s.DeleteGraph(cmd.Context(), args[0], version, force) })
		},
	}
	cmd.Flags().StringVar(&version, "version", "", "delete this version only (default: all)")
	cmd.Flags().BoolVar(&force, "force", false, "delete it even if it is used")
	return cmd
}

func (p *program) graphCheckCommand() *cobra.Command {
	var allowed []string
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check graph files; no server is needed",
		Long: `Check graph files and report everything that is wrong, with its line. Files that use each other as
subgraphs are checked together. No server is needed.

With --endpoint-allow the endpoints of nodes are checked as serve checks them with these patterns. An empty
pattern allows none, as a server that other machines reach without the option.`,
		Example: `  graphd graph check graphs/*.yaml
  graphd graph check --endpoint-allow '*.prod.example:443' graphs/*.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactArgs("FILE")(cmd, args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			format, err := output.ParseFormat(p.outputFormat)
			if err != nil {
				return err
			}
			good, failures, err := checkFiles(args, allowed)
			if err != nil {
				return err
			}
			if format != output.Text {
				return writeProblems(p.Out, format, failures)
			}
			return printChecked(p.Out, good, failures)
		},
	}
	cmd.Flags().StringArrayVar(&allowed, server.FlagEndpointAllow, server.SplitEndpointPatterns(p.getenv("GRAPHD_ENDPOINT_ALLOW")),
		"endpoint that nodes may have, as for serve (repeatable, env GRAPHD_ENDPOINT_ALLOW; default: endpoints are not checked)")
	return cmd
}

// printChecked prints the valid graphs and the problems, for a person.
func printChecked(out io.Writer, good []*graph.Graph, failures []error) error {
	for _, g := range good {
		if err := output.WriteLine(out, "ok  %s  version %s", g.Name, g.Version); err != nil {
			return err
		}
	}
	wrong := errors.Join(failures...)
	if _, ok := errors.AsType[*graph.BuildError](wrong); ok {
		return fmt.Errorf("the graphs are wrong\n%w", wrong)
	}
	return wrong
}

// writeProblems writes a list of the problems, empty if there are none.
func writeProblems(out io.Writer, format output.Format, failures []error) error {
	problems := []fileProblem{}
	for _, failure := range failures {
		problems = append(problems, listProblems(failure)...)
	}
	var err error
	if format == output.JSON {
		err = output.WriteValue(out, format, problems)
	} else {
		for _, problem := range problems {
			err = errors.Join(err, output.WriteValue(out, format, problem))
		}
	}
	if err == nil && len(problems) > 0 {
		return &exit.StatusError{Code: exit.CodeError}
	}
	return err
}

// fileProblem is one problem of a graph file, for programs.
type fileProblem struct {
	File    string       `json:"file"`
	Line    int          `json:"line,omitempty"`
	Path    string       `json:"path,omitempty"`
	Reason  graph.Reason `json:"reason,omitempty"`
	Message string       `json:"message"`
}

func listProblems(failure error) []fileProblem {
	file, isFile := errors.AsType[*graphfile.FileError](failure)
	build, isBuild := errors.AsType[*graph.BuildError](failure)
	switch {
	case isFile && isBuild:
		list := make([]fileProblem, len(build.Problems))
		for i, p := range build.Problems {
			list[i] = fileProblem{file.Path, p.Line, p.Path, p.Reason, p.Message}
		}
		return list
	case isFile:
		return []fileProblem{{File: file.Path, Message: file.Error()}}
	}
	return []fileProblem{{Message: failure.Error()}}
}

// refuseFolder returns a usage error for a folder in place of a file.
func refuseFolder(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return exit.Usagef("%s is a folder", path).WithHint("name the files in it, like %s", filepath.Join(path, "*.yaml"))
	}
	return nil
}

// checkFiles returns the valid graphs, and a *graphfile.FileError for each other
// file. allowed are the patterns of endpoints, empty = endpoints are not checked.
func checkFiles(paths, allowed []string) (good []*graph.Graph, failures []error, err error) {
	var files []graphfile.File
	for _, path := range paths {
		if err := refuseFolder(path); err != nil {
			return nil, nil, err
		}
		file, err := graphfile.ReadFile(path)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		files = append(files, file)
	}
	env, err := server.NewCompileEnv(schema.New(schema.Limits{}), expr.Options{})
	if err != nil {
		return nil, nil, err
	}
	if env.CheckEndpoint, err = server.NewEndpointCheck(allowed); err != nil {
		return nil, nil, err
	}
	good, wrong := graphfile.CompileAll(files, env)
	if joined, ok := wrong.(interface{ Unwrap() []error }); ok {
		failures = append(failures, joined.Unwrap()...)
	}
	return good, failures, nil
}
