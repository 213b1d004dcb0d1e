// Package arch_test holds the house to its plan: who may import whom, what a
// room may link, how wide a package reaches, and that each one says what it is.
//
// depguard checks the direct imports of a file while it is written. This test
// sees what is linked in the end, and knows every room by name.
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
	// maxFanOut is how many packages of this module one package may import.
	// Past it a package has become a place where everything meets.
	maxFanOut = 6
)

// A listed package is what `go list -json` tells of one.
type listed struct {
	ImportPath string
	Dir        string
	Doc        string
	GoFiles    []string
	Imports    []string
	Deps       []string
}

func TestEveryPackageBelongsToARoom(t *testing.T) {
	for _, p := range packages(t) {
		_, ok := roomOf(p.ImportPath)
		require.True(t, ok, "%s is in no room: give it one in internal/arch/rooms_test.go", p.ImportPath)
	}
}

func TestImportsFollowTheArrows(t *testing.T) {
	eachBroken(t, func(p listed) error { return checkArrows(p.ImportPath, p.Imports) })
}

func TestRoomsDoNotLinkWhatTheyMustNotKnow(t *testing.T) {
	eachBroken(t, func(p listed) error { return checkLinks(p.ImportPath, p.Deps) })
}

func TestNothingThatShipsLinksTestSupport(t *testing.T) {
	eachBroken(t, func(p listed) error { return checkSupport(p.ImportPath, p.Deps) })
}

func TestPackagesStayNarrow(t *testing.T) {
	eachBroken(t, func(p listed) error { return checkFanOut(p.ImportPath, p.Imports) })
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) == 0 || strings.HasPrefix(p.ImportPath, module+"/gen/") {
			continue
		}
		require.NotEmpty(t, p.Doc, "%s has no package comment", p.ImportPath)
	}
}

func TestPureRoomsDoNotReadTheClock(t *testing.T) {
	eachBroken(t, func(p listed) error {
		if r, ok := roomOf(p.ImportPath); !ok || !r.pure {
			return nil
		}
		return eachFile(p, checkClock)
	})
}

// TestPanicsAreContained finds goroutines and timers of rooms that touch what
// users send, and are not started through internal/contain.
func TestPanicsAreContained(t *testing.T) {
	eachBroken(t, func(p listed) error {
		if r, ok := roomOf(p.ImportPath); !ok || !r.contained {
			return nil
		}
		return eachFile(p, checkGoroutines)
	})
}

// eachFile applies a check to the sources of a package.
func eachFile(p listed, check func(name string, src []byte) error) error {
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

// eachBroken reports every package that a rule finds fault with.
func eachBroken(t *testing.T, rule func(listed) error) {
	t.Helper()
	var all []error
	for _, p := range packages(t) {
		all = append(all, rule(p))
	}
	require.NoError(t, errors.Join(all...))
}

func checkArrows(importPath string, imports []string) error {
	r, ok := roomOf(importPath)
	if !ok || r.everything {
		return nil
	}
	var all []error
	for _, imp := range imports {
		target, ok := roomOf(imp)
		if !ok || target.path == r.path || target.everywhere || slices.Contains(r.may, target.path) {
			continue
		}
		all = append(all, fmt.Errorf("%s imports %s, but room %s may import only %v",
			importPath, imp, r.path, r.may))
	}
	return errors.Join(all...)
}

func checkLinks(importPath string, deps []string) error {
	r, ok := roomOf(importPath)
	if !ok {
		return nil
	}
	var all []error
	for _, prefix := range r.never {
		var found []string
		for _, dep := range deps {
			if within(dep, prefix) {
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

func checkSupport(importPath string, deps []string) error {
	if r, ok := roomOf(importPath); !ok || r.support {
		return nil
	}
	var all []error
	for _, dep := range deps {
		target, ok := roomOf(dep)
		if (ok && target.support) || within(dep, "github.com/stretchr/testify") {
			all = append(all, fmt.Errorf("%s ships and links %s, which is for tests", importPath, dep))
		}
	}
	return errors.Join(all...)
}

func checkFanOut(importPath string, imports []string) error {
	if r, ok := roomOf(importPath); !ok || r.everything {
		return nil
	}
	var own []string
	for _, imp := range imports {
		target, _ := roomOf(imp)
		if _, ok := relative(imp); ok && !target.everywhere {
			own = append(own, imp)
		}
	}
	if len(own) > maxFanOut {
		return fmt.Errorf("%s imports %d packages of this module, more than %d: %v",
			importPath, len(own), maxFanOut, own)
	}
	return nil
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

// isContained reports whether an expression is contain.Func(…), or a method
// named contained of whatever has the log.
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
	return f.Sel.Name == "contained" || f.Sel.Name == "Func" && of != nil && of.Name == "contain"
}

// packages lists every package of the module.
func packages(t *testing.T) []listed {
	t.Helper()
	touchSources(t)
	cmd := exec.CommandContext(t.Context(), "go", "list",
		"-json=ImportPath,Dir,Doc,GoFiles,Imports,Deps", "./...")
	cmd.Dir = root
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	require.NoError(t, cmd.Run(), complaints.String())

	var all []listed
	for dec := json.NewDecoder(&out); ; {
		var p listed
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

// touchSources stats every Go file, so that `go test` sees what this test
// depends on and does not answer from its cache after an import changed.
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
