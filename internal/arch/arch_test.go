// Package arch_test checks the layers: the allowed imports, the packages that a
// layer may link, the number of packages that one imports, and that each has a
// comment.
//
// depguard checks the direct imports of a file while it is written. This test sees
// all that is linked, and knows every layer by name.
package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root = "../.."
	// maxFanOut is the number of packages of this module that one package may
	// import, besides those of its own folder below internal/. A package beyond it
	// connects too much.
	maxFanOut = 6
)

// A goPackage is the output of `go list -json` for one package.
type goPackage struct {
	ImportPath string
	Dir        string
	Doc        string
	GoFiles    []string
	Imports    []string
	Deps       []string
}

func TestEveryPackageBelongsToALayer(t *testing.T) {
	checkPackages(t, func(p goPackage) error { return checkLayer(p.ImportPath) })
}

func TestImportsFollowTheArrows(t *testing.T) {
	checkPackages(t, func(p goPackage) error { return checkImports(p.ImportPath, p.Imports) })
}

func TestLayersDoNotLinkWhatTheyMustNotKnow(t *testing.T) {
	checkPackages(t, func(p goPackage) error { return checkLinks(p.ImportPath, p.Deps) })
}

func TestNothingThatShipsLinksTestSupport(t *testing.T) {
	checkPackages(t, func(p goPackage) error { return checkTestSupport(p.ImportPath, p.Deps) })
}

func TestPackagesStayNarrow(t *testing.T) {
	checkPackages(t, func(p goPackage) error { return checkFanOut(p.ImportPath, p.Imports) })
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range listPackages(t) {
		if len(p.GoFiles) == 0 || strings.HasPrefix(p.ImportPath, module+"/gen/") {
			continue
		}
		require.NotEmpty(t, p.Doc, "%s has no package comment", p.ImportPath)
	}
}

func TestPureLayersDoNotReadTheClock(t *testing.T) {
	checkPackages(t, func(p goPackage) error {
		if r, ok := layerOf(p.ImportPath); !ok || !r.isPure {
			return nil
		}
		return checkFiles(p, checkClock)
	})
}

// TestPanicsAreContained finds goroutines and timers that do not start through
// internal/contain, in layers that touch the data of users.
func TestPanicsAreContained(t *testing.T) {
	checkPackages(t, func(p goPackage) error {
		if r, ok := layerOf(p.ImportPath); !ok || !r.containsPanics {
			return nil
		}
		return checkFiles(p, checkGoroutines)
	})
}

// checkFiles applies a check to the sources of a package.
func checkFiles(p goPackage, check func(name string, src []byte) error) error {
	var all []error
	for _, name := range p.GoFiles {
		src, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		all = append(all, check(name, src))
	}
	return errors.Join(all...)
}

// checkPackages reports every package that violates a rule.
func checkPackages(t *testing.T, rule func(goPackage) error) {
	t.Helper()
	var all []error
	for _, p := range listPackages(t) {
		all = append(all, rule(p))
	}
	require.NoError(t, errors.Join(all...))
}

func checkLayer(importPath string) error {
	if _, ok := layerOf(importPath); ok {
		return nil
	}
	folder, _ := relativePath(importPath)
	return fmt.Errorf("%s is in no layer: add the line {path: %q, mayImport: []string{WHAT IT IMPORTS}, neverLinks: outerPackages} "+
		"to layers in internal/arch/layers_test.go", importPath, folder)
}

func checkImports(importPath string, imports []string) error {
	r, ok := layerOf(importPath)
	if !ok || r.importsAnything {
		return nil
	}
	var all []error
	for _, imp := range imports {
		target, ok := layerOf(imp)
		if !ok || target.path == r.path || target.isOpenToAll || slices.Contains(r.mayImport, target.path) {
			continue
		}
		all = append(all, fmt.Errorf("%s imports %s, but room %s may import only %v",
			importPath, imp, r.path, r.mayImport))
	}
	return errors.Join(all...)
}

func checkLinks(importPath string, deps []string) error {
	r, ok := layerOf(importPath)
	if !ok {
		return nil
	}
	var all []error
	for _, prefix := range r.neverLinks {
		var found []string
		for _, dep := range deps {
			if isWithin(dep, prefix) {
				found = append(found, dep)
			}
		}
		if len(found) > 0 {
			all = append(all, fmt.Errorf(
				"%s links %v: room %s must not know %s (`go mod why` and `go list -deps` show the way)",
				importPath, found, r.path, prefix))
		}
	}
	return errors.Join(all...)
}

func checkTestSupport(importPath string, deps []string) error {
	if r, ok := layerOf(importPath); !ok || r.isTestSupport {
		return nil
	}
	var all []error
	for _, dep := range deps {
		target, ok := layerOf(dep)
		if (ok && target.isTestSupport) || isWithin(dep, "github.com/stretchr/testify") {
			all = append(all, fmt.Errorf("%s ships and links %s, which is for tests", importPath, dep))
		}
	}
	return errors.Join(all...)
}

func checkFanOut(importPath string, imports []string) error {
	if r, ok := layerOf(importPath); !ok || r.importsAnything {
		return nil
	}
	var own []string
	for _, imp := range imports {
		target, _ := layerOf(imp)
		if _, ok := relativePath(imp); ok && !target.isOpenToAll && !isSameFolder(importPath, imp) {
			own = append(own, imp)
		}
	}
	if len(own) > maxFanOut {
		return fmt.Errorf("%s imports %d packages of this module, more than %d: %v",
			importPath, len(own), maxFanOut, own)
	}
	return nil
}

// isSameFolder reports whether two packages are in the same folder below internal/,
// as internal/transport and internal/transport/wire are.
func isSameFolder(a, b string) bool {
	return folderOf(a) == folderOf(b)
}

func folderOf(importPath string) string {
	rel, _ := relativePath(importPath)
	elements := strings.SplitN(rel, "/", 3)
	return strings.Join(elements[:min(len(elements), 2)], "/")
}

// checkClock finds uses of package time that read or wait for the present.
func checkClock(name string, src []byte) error {
	clock := []string{
		"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker",
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var all []error
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := sel.X.(*ast.Ident)
		if ok && pkg.Name == "time" && slices.Contains(clock, sel.Sel.Name) {
			all = append(all, fmt.Errorf("%s: time.%s in a pure room: take the time as an argument",
				fset.Position(sel.Pos()), sel.Sel.Name))
		}
		return true
	})
	return errors.Join(all...)
}

// checkGoroutines finds goroutines and timers in which a panic would end the
// process.
func checkGoroutines(name string, src []byte) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var all []error
	refuse := func(n ast.Node, what string) {
		all = append(all, fmt.Errorf("%s: %s a panic in which ends the process: start it through contain.Func",
			fset.Position(n.Pos()), what))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !isContained(n.Call.Fun) {
				refuse(n, "a goroutine")
			}
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			starts := ok && len(n.Args) > 0 && (f.Sel.Name == "Go" || f.Sel.Name == "AfterFunc")
			if starts && !isContained(n.Args[len(n.Args)-1]) {
				refuse(n, "a goroutine or timer")
			}
		}
		return true
	})
	return errors.Join(all...)
}

// isContained reports whether an expression is contain.Func(…), or a method named
// containPanics of a type with a log.
func isContained(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, _ := f.X.(*ast.Ident)
	return f.Sel.Name == "containPanics" || f.Sel.Name == "Func" && of != nil && of.Name == "contain"
}

// listPackages lists every package of the module.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	touchSources(t)
	cmd := exec.CommandContext(t.Context(), "go", "list",
		"-json=ImportPath,Dir,Doc,GoFiles,Imports,Deps", "./...")
	cmd.Dir = root
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	require.NoError(t, cmd.Run(), complaints.String())

	var all []goPackage
	for dec := json.NewDecoder(&out); ; {
		var p goPackage
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		all = append(all, p)
	}
	require.NotEmpty(t, all)
	return all
}

// touchSources stats every Go file, so that `go test` knows the inputs of this test
// and does not answer from its cache after an import changed.
func touchSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && path != root
			if hidden || d.Name() == "bin" || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) == ".go" || d.Name() == "go.mod" {
			if _, err := os.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
}
