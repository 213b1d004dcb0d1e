package arch_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// logKeys are the keys of fields in logs. Each concept has one key everywhere, so
// that an operator finds all lines of a thread with one filter. A new key needs a
// line here, and must not mean the same as another one.
var logKeys = map[string]string{
	// The subject of the line.
	"thread": "id of a thread", "run": "id of a run", "task": "id of a task", "question": "id of an interrupt", "event": "id of an event of a webhook", "node": "name of a node",
	"graph": "name of a graph", "cron": "id of a cron", "version": "of a graph or of graphd", "worker": "id of a worker",
	"session": "id of a worker's stream", "endpoint": "name of an endpoint", "server": "name of a server",
	"trace_id": "of a trace", "span_id": "of a span", "collector": "address to which spans go",
	"request_id": "of a call", "principal": "name of an authenticated caller", "tenant": "of a call", "error_id": "told to the client in place of the cause", "file": "path",
	// The event.
	"state": "of a run", "reason": "why, a word of the protocol or a text", "cause": "what an error came of",
	"took": "duration", "timeout": "limit of a duration", "pause": "duration until the next try", "failures": "in a row",
	"panic": "its value", "stack": "of a panic", "stderr": "what a child process said",
	// Numbers of a thread in the store.
	"fence": "how often a run was taken up", "revision": "that is known", "stored": "that the store has",
	"seen": "newest event that was handed out", "newest": "event that the store has",
	// Workers.
	"build": "of a worker", "kept": "leases that go on", "lost": "leases that do not, or records of the audit", "held": "tasks", "connected": "workers", "missing": "values that a worker lacks",
	// Servers.
	"address": "that is listened on", "metrics": "address of the metrics", "links": "URL of the links", "http": "URL of the API for browsers", "langgraph": "URL of the API of LangGraph Server", "mode": "permissions of a file", "protocol": "of a call",
	"from": "earlier format of a store", "to": "later one", "done": "how many so far", "threads": "how many",
	"sink":    "name of a place that the audit is written to",
	"omitted": "lines that the log has not got", "bytes": "how many", "calls": "how many",
	"begins": "when a certificate becomes valid", "expires": "when it ceases to be",
	"unused": "what was given in vain", "unreadable": "what could not be read", "message": "of a failure",
	// As gRPC's middleware names them.
	"peer.address": "", "grpc.service": "", "grpc.method": "", "grpc.method_type": "", "grpc.start_time": "",
	"grpc.request.deadline": "", "grpc.code": "", "grpc.error": "", "grpc.time_ms": "",
}

func TestLogsHaveOneSetOfKeys(t *testing.T) {
	checkPackages(t, func(p goPackage) error { return checkFiles(p, checkLogKeys) })
}

// checkLogKeys finds fields of logs whose key is not on the list, or can't be
// read from the source.
func checkLogKeys(name string, src []byte) error {
	if !strings.Contains(string(src), `"go.uber.org/zap"`) {
		return nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var all []error
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if problem := logKeyProblem(call); problem != "" {
				all = append(all, fmt.Errorf("%s: %s", set.Position(call.Pos()), problem))
			}
		}
		return true
	})
	return errors.Join(all...)
}

// logKeyProblem returns the problem of the key of a field, "" if there is none or
// the call makes no field.
func logKeyProblem(call *ast.CallExpr) string {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) != 2 {
		return ""
	}
	if of, ok := f.X.(*ast.Ident); !ok || of.Name != "zap" {
		return ""
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		if s, named := call.Args[0].(*ast.SelectorExpr); named && s.Sel.Name == "Name" {
			return "" // a flag, logged under its own name
		}
		return "the key of a field must be a literal, or the Name of a flag"
	}
	key, err := strconv.Unquote(literal.Value)
	if err != nil {
		return err.Error()
	}
	if _, known := logKeys[key]; !known {
		return fmt.Sprintf("%q is no key of logs: use one of internal/arch/logkeys_test.go, or add it there", key)
	}
	return ""
}

func TestLogKeysRefuseALeak(t *testing.T) {
	in := func(field string) error {
		return checkLogKeys("x.go", []byte("package x\nimport \"go.uber.org/zap\"\nvar f = "+field))
	}
	require.ErrorContains(t, in(`zap.String("thread_id", id)`), `"thread_id" is no key`)
	require.ErrorContains(t, in(`zap.Int(key, 1)`), "must be a literal")
	require.NoError(t, in(`zap.String("thread", id)`))
	require.NoError(t, in(`zap.Error(err)`))
	require.NoError(t, in(`other.String("thread_id", id)`))
}
