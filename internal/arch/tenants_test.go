package arch_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// saysToClients lists the folders whose texts reach clients, in errors, failures and
// events. Those of internal/transport/permission get names as clients know them.
var saysToClients = []string{"internal/runtime", "internal/registry", "internal/worker", "internal/node", "internal/transport"}

// TestTextsNameThingsAsClientsDo finds threads, graphs and workers that are put into a text
// as the engine knows them, with their tenant. A text can't be cleaned later: what looks
// like the name of a tenant may be a part of what a user wrote.
func TestTextsNameThingsAsClientsDo(t *testing.T) {
	checkPackages(t, func(p goPackage) error {
		rel, _ := relativePath(p.ImportPath)
		isHeard := slices.ContainsFunc(saysToClients, func(dir string) bool { return rel == dir || strings.HasPrefix(rel, dir+"/") })
		if !isHeard || rel == "internal/transport/permission" {
			return nil
		}
		return checkFiles(p, checkTexts)
	})
}

// checkTexts finds arguments of texts that name a thread, a graph or a worker of the engine.
func checkTexts(name string, src []byte) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var all []error
	refuse := func(e ast.Expr) {
		if isQualifiedName(e) {
			all = append(all, fmt.Errorf("%s: a text names what belongs to a tenant: use tenant.ClientName", set.Position(e.Pos())))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if makesText(n.Fun) {
				for _, argument := range n.Args {
					refuse(argument)
				}
			}
		case *ast.BinaryExpr:
			if n.Op == token.ADD && isText(n.X) {
				refuse(n.Y)
			}
		}
		return true
	})
	return errors.Join(all...)
}

// makesText reports whether a function puts its arguments into a text for clients.
func makesText(f ast.Expr) bool {
	var name string
	switch f := f.(type) {
	case *ast.SelectorExpr:
		name = f.Sel.Name
	case *ast.Ident:
		name = f.Name
	}
	return slices.Contains([]string{"Errorf", "Sprintf", "With", "WithViolation", "AddViolation"}, name)
}

// isText reports whether an expression ends with a text that has a space: keys have none.
func isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING && strings.Contains(e.Value, " ")
	case *ast.BinaryExpr:
		return isText(e.Y)
	}
	return false
}

// isQualifiedName reports whether an expression is a thread, a graph or a worker by the
// names that the engine gives to variables and fields.
func isQualifiedName(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "thread"
	case *ast.SelectorExpr:
		if e.Sel.Name == "Name" {
			of, isVariable := e.X.(*ast.Ident)
			field, isField := e.X.(*ast.SelectorExpr)
			return isVariable && of.Name == "g" || isField && field.Sel.Name == "Graph"
		}
		if of, ok := e.X.(*ast.Ident); ok && of.Name == "build" {
			return false // a graph.BuildError names the source of a graph, which has no tenant
		}
		return slices.Contains([]string{"Thread", "Graph", "Worker"}, e.Sel.Name)
	}
	return false
}

func TestTextsRefuseALeak(t *testing.T) {
	in := func(expression string) error {
		return checkTexts("x.go", []byte("package x\nvar v = "+expression))
	}
	for _, bad := range []string{
		`Errorf("no thread %q", thread)`, `fmt.Sprintf("%s", t.Graph.Name)`, `e.With("graph", g.Name)`, `v.AddViolation("f", "%q", head.Graph)`,
		`"no worker of graph " + need.Graph + "."`, `e.With("workerId", hello.Worker)`,
	} {
		require.ErrorContains(t, in(bad), "tenant.ClientName", bad)
	}
	for _, good := range []string{
		`Errorf("no thread %q", tenant.ClientName(thread))`, `zap.String("thread", h.Thread)`, `x.Graph + "/" + node`, `e.With("node", n.Name)`,
	} {
		require.NoError(t, in(good), good)
	}
}
