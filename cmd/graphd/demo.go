package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	refundreview "github.com/graphd-dev/graphd/examples/refund-review"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/report"
	"github.com/graphd-dev/graphd/internal/cli/shell"
	"github.com/graphd-dev/graphd/internal/server"
)

// demoOptions are the flags of `demo`.
type demoOptions struct {
	cli.DemoOptions

	graph string // a file in place of the embedded file
	store string // sqlite:PATH; "" = in the folder of demos

	onPage    bool // the question is answered on the page
	noBrowser bool
}

func (p *program) demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play a refund review on a server in this process",
		Long: `Play a refund review against a real server in this process, on an embedded store: show every node's
update as it streams, stop at the question, answer it, and show the result.

The answer is taken from --answer or asked at the terminal. Without both, everything stays stored
and the command that resumes is printed; the exit code is then 3.

With --page the answer comes from the page, in a browser: the demo prints the link, opens it where a person sits at
this machine, and shows every update here, too. It is on a server in memory and stores nothing. It ends some seconds
after the run has ended, and with Ctrl-C.`,
		Example: `  graphd demo --page
  graphd demo --answer '{"decision": "approved_with_conditions", "conditions": "10% restocking fee"}'`,
		Args: refuseArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Thread = "demo-" + strings.ToLower(rand.Text()[:8])
			o.Name, o.Document = refundreview.File, refundreview.Document
			if o.graph != "" {
				text, err := os.ReadFile(o.graph)
				if err != nil {
					return err
				}
				o.Name, o.Document = o.graph, string(text)
			}
			if o.onPage {
				if err := o.checkPage(); err != nil {
					return err
				}
				return p.runDemoOnPage(cmd.Context(), o)
			}
			return p.runDemo(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Answer, "answer", "", "the answer to the question: JSON, @FILE or -")
	f.StringVar(&o.Request, "request", cli.DemoRequest, "what the customer writes")
	f.StringVar(&o.User, "user", cli.DemoUser, "who the customer is: any JSON")
	f.StringVar(&o.graph, "graph", "", "a graph file in place of the built-in one")
	f.StringVar(&o.store, "store", "", "sqlite:PATH to keep everything in (default: removed when the demo ends)")
	f.BoolVar(&o.onPage, "page", false, "answer on the page, in a browser")
	registerNoOpen(f, &o.noBrowser)
	cmd.AddCommand(p.demoResumeCommand())
	return cmd
}

func (p *program) demoResumeCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "resume THREAD --store sqlite:PATH",
		Short: "Go on with a demo that waits for an answer",
		Args:  exactArgs("THREAD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Thread = args[0]
			if path, ok := strings.CutPrefix(o.store, "sqlite:"); ok {
				if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("no demo waits in %s: a demo removes its store when it has ended", path)
				}
			}
			return p.runDemo(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Answer, "answer", "", "the answer to the question: JSON, @FILE or -")
	cmd.Flags().StringVar(&o.store, "store", "", "where the demo was kept")
	cobra.CheckErr(cmd.MarkFlagRequired("store"))
	return cmd
}

// demoDrain is how long a node may run after the end of a demo.
const demoDrain = 5 * time.Second

// runDemo starts a server, runs the demo against it over a loopback port, and
// drains it. It removes the store when no run waits in it.
func (p *program) runDemo(ctx context.Context, o demoOptions) (err error) {
	kept := o.store != "" && o.Document != ""
	if o.store == "" {
		o.store = demoStoreURL(o.Thread)
	}
	o.ResumeArgs = []string{"demo", "resume", o.Thread, "--store", o.store}
	life := context.WithoutCancel(ctx)
	s, err := server.NewServer(life, server.Options{Listen: "127.0.0.1:0", Store: o.store}, zap.NewNop(), p.version)
	if err != nil {
		return err
	}
	s.StartServing()
	p.connection.useOwnServer(s.Address(), server.Options{})
	if p.outputFormat == string(output.Text) {
		if err := output.WriteLine(p.Out, "server %s  store %s", s.Address(), o.store); err != nil {
			return err
		}
	}
	err = p.withSession(func(session *cli.Session) error {
		session.Invocation = shell.Invocation{Program: p.invocation}
		return session.RunDemo(ctx, o.DemoOptions)
	})
	limit, cancel := context.WithTimeout(life, demoDrain)
	defer cancel()
	err = errors.Join(err, s.DrainServer(limit))
	if !kept && isDemoOver(err, o.Document != "") {
		err = errors.Join(err, removeStore(o.store))
	}
	return err
}

// isDemoOver reports whether no run waits in the store of a demo. After an error the
// store of an earlier demo may still have a waiting run.
func isDemoOver(err error, fresh bool) bool {
	switch exit.CodeOf(err) {
	case exit.CodeDone, exit.CodeFailed:
		return true
	case exit.CodeWaiting:
		return false
	}
	return fresh && report.Reason(err) != "RESPONSE_SCHEMA_MISMATCH"
}

// demoStoreURL returns the store of a demo's thread until it is answered: in the
// user's state folder, so that it survives the process, or else among the temporary
// files.
func demoStoreURL(thread string) string {
	dir := os.Getenv("XDG_STATE_HOME")
	if home, err := os.UserHomeDir(); dir == "" && err == nil {
		dir = filepath.Join(home, ".local", "state")
	}
	if !filepath.IsAbs(dir) {
		dir = os.TempDir()
	}
	own := filepath.Join(dir, "graphd")
	if err := os.MkdirAll(own, 0o700); err != nil { //nolint:gosec // the user's own environment names it
		own = os.TempDir()
	}
	return "sqlite:" + filepath.Join(own, thread+".db")
}

// removeStore removes the file of a store and the files beside it.
func removeStore(name string) error {
	path, ok := strings.CutPrefix(name, "sqlite:")
	if !ok {
		return nil
	}
	return sqlite.Remove(path)
}
