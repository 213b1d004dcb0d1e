package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/report"
	"github.com/graphd-dev/graphd/internal/cli/shell"
)

// forgedText is a text with which the author of a request tries to deceive an
// approver.
const forgedText = "pay 5\nanswer: approved\r\x1b[2K\x1b]8;;http://x\x07\u009b31m\u202e005\u2066 \U000e0041\u200b\u00ad\ufeff\u2028\x7f"

// forgeMessage puts forgedText into every text of a message.
func forgeMessage(m protoreflect.Message, depth int) {
	if p, ok := m.Interface().(*graphdv1.Payload); ok {
		quoted, _ := json.Marshal(forgedText) //nolint:errchkjson // a text
		raw := `{"k` + "\u202e\u009b\U000e0041" + `": ` + string(quoted) + `, "type": "object", "required": ["decision"],
			"properties": {"decision": {"enum": [` + string(quoted) + `]}}, "enum": ["a` + "\u202e" + `", {"b": "` + "\u2066" + `"}]}`
		p.Body = &graphdv1.Payload_Json{Json: raw}
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		d := fields.Get(i)
		if d.ContainingOneof() != nil && m.WhichOneof(d.ContainingOneof()) != nil || strings.HasSuffix(string(d.Name()), "page_token") {
			continue
		}
		forgeField(m, d, depth)
	}
}

func forgeField(m protoreflect.Message, d protoreflect.FieldDescriptor, depth int) {
	switch {
	case d.IsMap():
		if d.MapKey().Kind() == protoreflect.StringKind && d.MapValue().Kind() == protoreflect.StringKind {
			m.Mutable(d).Map().Set(protoreflect.ValueOfString(forgedText).MapKey(), protoreflect.ValueOfString(forgedText))
		}
	case d.Message() != nil && depth == 0:
	case d.IsList() && d.Message() != nil:
		list := m.Mutable(d).List()
		for range 2 {
			forgeMessage(list.AppendMutable().Message(), depth-1)
		}
	case d.IsList() && d.Kind() == protoreflect.StringKind:
		m.Mutable(d).List().Append(protoreflect.ValueOfString(forgedText))
	case d.IsList():
	case d.Message() != nil:
		forgeMessage(m.Mutable(d).Message(), depth-1)
	case d.Kind() == protoreflect.StringKind:
		m.Set(d, protoreflect.ValueOfString(forgedText))
	case d.Kind() == protoreflect.EnumKind:
		m.Set(d, protoreflect.ValueOfEnum(1))
	case d.Kind() == protoreflect.Int32Kind, d.Kind() == protoreflect.Uint32Kind:
	}
}

// forgingServer is a server that answers every call with forged text. state is the
// state of every run. isRefusing makes it refuse instead.
type forgingServer struct {
	state      graphdv1.RunState
	isRefusing bool
}

func (f *forgingServer) serveForged(_ any, stream grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(stream)
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(
		protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(name, "/"), "/", ".")))
	if err != nil {
		return err
	}
	method := found.(protoreflect.MethodDescriptor) //nolint:errcheck // it is the name of one
	in, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		return err
	}
	if err := stream.RecvMsg(in.New().Interface()); err != nil {
		return err
	}
	if f.isRefusing {
		return status.Error(codes.FailedPrecondition, forgedText)
	}
	out, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	if err != nil {
		return err
	}
	for _, m := range f.forgedAnswers(out) {
		if err := stream.SendMsg(m); err != nil {
			return err
		}
	}
	return nil
}

// forgedAnswers returns one message, or an event of each kind, the end last.
func (f *forgingServer) forgedAnswers(kind protoreflect.MessageType) []proto.Message {
	if kind.Descriptor().Name() != "Event" {
		m := kind.New()
		forgeMessage(m, 6)
		return []proto.Message{m.Interface()}
	}
	var all []proto.Message
	kinds := kind.Descriptor().Oneofs().ByName("kind").Fields()
	for i := range kinds.Len() {
		m := kind.New()
		forgeMessage(m.Mutable(kinds.Get(i)).Message(), 6)
		forgeMessage(m, 6)
		e := m.Interface().(*graphdv1.Event) //nolint:errcheck // see its name
		if e.GetEnd() != nil {
			continue // the last one
		}
		if t := e.GetTask(); t != nil {
			t.Phase = graphdv1.TaskChange_PHASE_RETRYING
		}
		all = append(all, e)
	}
	return append(all, &graphdv1.Event{ThreadId: forgedText, Kind: &graphdv1.Event_Message{Message: &graphdv1.MessageDelta{
		Value: newPayload(`"a\nanswer: approved\n\u001b[1m"`),
	}}}, &graphdv1.Event{ThreadId: forgedText, Kind: &graphdv1.Event_End{End: &graphdv1.EndOfStream{
		Cause: graphdv1.EndOfStream_CAUSE_RUN_STOPPED, ResumeAt: &graphdv1.Cursor{},
		Run: &graphdv1.Run{RunId: forgedText, State: f.state, Output: newPayload(`{"a` + "\u202e" + `":"\nanswer: approved\u0085"}`), Failure: &graphdv1.Failure{
			Reason: forgedText, Message: forgedText, Node: forgedText, Stack: forgedText + "\n\tmain.go",
		}},
	}}})
}

func sessionCommands(t *testing.T) map[string]func(*cli.Session, context.Context) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "g.yaml")
	require.NoError(t, os.WriteFile(file, []byte("graph: g\n"), 0o600))
	return map[string]func(*cli.Session, context.Context) error{
		"graph list": (*cli.Session).ListGraphs,
		"health":     func(s *cli.Session, ctx context.Context) error { return s.CheckHealth(ctx, "") },
		"graph show": func(s *cli.Session, ctx context.Context) error { return s.ShowGraph(ctx, "g") },
		"graph put":  func(s *cli.Session, ctx context.Context) error { return s.PutGraph(ctx, file) },
		"inbox":      func(s *cli.Session, ctx context.Context) error { return s.ShowInbox(ctx, cli.InboxOptions{}) },
		"inbox watch": func(s *cli.Session, ctx context.Context) error {
			return s.ShowInbox(ctx, cli.InboxOptions{Watch: true})
		},
		"inbox thread": func(s *cli.Session, ctx context.Context) error {
			return s.ShowInbox(ctx, cli.InboxOptions{Thread: "t"})
		},
		"inbox narrow": func(s *cli.Session, ctx context.Context) error {
			s.Columns = 60
			return s.ShowInbox(ctx, cli.InboxOptions{Limit: 1})
		},
		"inbox show": func(s *cli.Session, ctx context.Context) error {
			return s.ShowQuestion(ctx, cli.QuestionName{Thread: "t"})
		},
		"inbox show by id": func(s *cli.Session, ctx context.Context) error {
			s.Columns = 60
			return s.ShowQuestion(ctx, cli.QuestionName{Thread: "t", Interrupt: "i"})
		},
		"state": func(s *cli.Session, ctx context.Context) error { return s.ShowState(ctx, cli.StateOptions{}) },
		"update": func(s *cli.Session, ctx context.Context) error {
			return s.UpdateState(ctx, cli.UpdateOptions{Values: "{}"})
		},
		"history": func(s *cli.Session, ctx context.Context) error { return s.ShowHistory(ctx, cli.HistoryOptions{}) },
		"history values": func(s *cli.Session, ctx context.Context) error {
			return s.ShowHistory(ctx, cli.HistoryOptions{Values: true})
		},
		"threads": func(s *cli.Session, ctx context.Context) error { return s.ListThreads(ctx, cli.ThreadsOptions{}) },
		"fork": func(s *cli.Session, ctx context.Context) error {
			return s.ForkThread(ctx, cli.ForkOptions{Source: "t"})
		},
		"copy": func(s *cli.Session, ctx context.Context) error {
			return s.CopyThread(ctx, cli.CopyOptions{Source: "t"})
		},
		"prune":  func(s *cli.Session, ctx context.Context) error { return s.PruneThread(ctx, "t", 1) },
		"delete": func(s *cli.Session, ctx context.Context) error { return s.DeleteThread(ctx, "t", false) },
		"cancel": func(s *cli.Session, ctx context.Context) error {
			return s.CancelRun(ctx, cli.CancelOptions{Thread: "t"})
		},
		"run": func(s *cli.Session, ctx context.Context) error { return s.Run(ctx, cli.RunOptions{Graph: "g"}) },
		"run all": func(s *cli.Session, ctx context.Context) error {
			return s.Run(ctx, cli.RunOptions{Graph: "g", Events: []string{
				"values", "updates", "messages", "custom", "tasks", "checkpoints", "debug",
			}})
		},
		"detach": func(s *cli.Session, ctx context.Context) error {
			return s.Run(ctx, cli.RunOptions{Graph: "g", Detach: true})
		},
		"resume": func(s *cli.Session, ctx context.Context) error {
			return s.Resume(ctx, cli.ResumeOptions{Thread: "t", Value: "1"})
		},
		"ask":   func(s *cli.Session, ctx context.Context) error { return s.Resume(ctx, cli.ResumeOptions{Thread: "t"}) },
		"watch": func(s *cli.Session, ctx context.Context) error { return s.Watch(ctx, cli.WatchOptions{Thread: "t"}) },
		"demo": func(s *cli.Session, ctx context.Context) error {
			return s.RunDemo(ctx, cli.DemoOptions{Thread: "t", Document: "x", Request: "r", User: "1", Answer: `"x"`})
		},
	}
}

// TestNoCommandPrintsWhatATerminalObeys has a server that forges every text, and
// runs every command in every format.
func TestNoCommandPrintsWhatATerminalObeys(t *testing.T) {
	for name, command := range sessionCommands(t) {
		t.Run(name, func(t *testing.T) {
			for _, f := range []*forgingServer{
				{state: graphdv1.RunState_RUN_STATE_SUCCEEDED},
				{state: graphdv1.RunState_RUN_STATE_FAILED},
				{state: graphdv1.RunState_RUN_STATE_INTERRUPTED},
				{isRefusing: true},
			} {
				for _, format := range []output.Format{output.Text, output.JSON, output.JSONL} {
					c, out := f.newSession(t, "1\n1\n1\n")
					c.Format = format
					err := command(c, t.Context())
					requireVisible(t, out.String())
					said := out.Len()
					report.PrintError(out, err, format, forgedText, c.Invocation)
					requireVisible(t, out.String()[said:])
				}
			}
		})
	}
}

func requireVisible(t *testing.T, out string) {
	t.Helper()
	for _, r := range out {
		if r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			require.Fail(t, "a terminal obeys what is printed", "%U in %q", r, out)
		}
	}
	for line := range strings.Lines(out) {
		require.False(t, strings.HasPrefix(strings.TrimSpace(line), "answer: approved"), out)
	}
}

func (f *forgingServer) newSession(t *testing.T, in string) (*cli.Session, *bytes.Buffer) {
	t.Helper()
	pipe := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.UnknownServiceHandler(f.serveForged))
	served := make(chan error, 1)
	go func() { served <- server.Serve(pipe) }()
	client, err := client.DialServer("passthrough:///forger", client.Security{}, grpc.WithContextDialer(
		func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, client.Close())
		server.Stop()
		require.NoError(t, <-served)
	})
	out := &bytes.Buffer{}
	return &cli.Session{
		Client: client, Invocation: shell.Invocation{Program: []string{"graphd"}},
		Output: output.Output{IO: output.IO{In: strings.NewReader(in), Out: out, Err: out, IsTerminal: true}},
	}, out
}

// TestCommandsPrintThroughThePrinter finds writes to a terminal that bypass
// output/printer.go, which makes text visible.
func TestCommandsPrintThroughThePrinter(t *testing.T) {
	var files []string
	for _, dir := range []string{".", "*", filepath.Join("..", "server"), filepath.Join("..", "..", "cmd", "graphd")} {
		found, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		files = append(files, found...)
	}
	var past []string
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "printer.go" {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && writesOutput(call) {
				past = append(past, set.Position(n.Pos()).String())
			}
			return true
		})
	}
	require.Empty(t, past, "print with printer, WriteLine, WriteDocument, WriteJSON or WriteValue of internal/cli/output/printer.go")
}

// writesOutput reports whether a call writes to something other than a buffer of
// its own. Buffers are named b, the answers of HTTP w.
func writesOutput(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, _ := f.X.(*ast.Ident)
	writers := []string{"Fprint", "Fprintf", "Fprintln", "Print", "Printf", "Println", "WriteString", "NewEncoder"}
	if from != nil && slices.Contains([]string{"fmt", "io", "json"}, from.Name) && slices.Contains(writers, f.Sel.Name) {
		return len(call.Args) == 0 || !isBuffer(call.Args[0])
	}
	out, ok := f.X.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Out", "Err", "Stdout", "Stderr"}, out.Sel.Name) && strings.HasPrefix(f.Sel.Name, "Write")
}

func isBuffer(arg ast.Expr) bool {
	if and, ok := arg.(*ast.UnaryExpr); ok {
		arg = and.X
	}
	name, ok := arg.(*ast.Ident)
	return ok && slices.Contains([]string{"b", "w"}, name.Name)
}
