package graphfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/graph"
)

// File is a graph file that could be read.
type File struct {
	Path      string
	Spec      *graph.Spec
	Positions Positions
	// Err lists the problems of the text; Spec then lacks those fields.
	Err error
}

// FileError lists the problems of a file.
type FileError struct {
	Path string
	Err  error // a *graph.BuildError, or why the file cannot be read
}

// Error shows every problem as "file:line: path: message (REASON)".
func (e *FileError) Error() string {
	var build *graph.BuildError
	if unread, ok := errors.AsType[*fs.PathError](e.Err); ok {
		return fmt.Sprintf("can't read %s: %v", e.Path, unread.Err)
	}
	if !errors.As(e.Err, &build) {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	lines := make([]string, len(build.Problems))
	for i, p := range build.Problems {
		where := e.Path
		if p.Line > 0 {
			where = fmt.Sprintf("%s:%d", e.Path, p.Line)
		}
		p.Line = 0
		lines[i] = where + ": " + p.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// ReadFile reads a file. The error is a *FileError when the file cannot be read
// or is no YAML or JSON; other problems are in File.Err.
func ReadFile(path string) (File, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return File{}, &FileError{Path: path, Err: err}
	}
	return parseFile(path, data)
}

func parseFile(path string, data []byte) (File, error) {
	spec, positions, err := Parse(path, data)
	if spec == nil {
		return File{}, &FileError{Path: path, Err: err}
	}
	return File{Path: path, Spec: spec, Positions: positions, Err: err}, nil
}

// LoadDir reads every graph file of a folder: *.yaml, *.yml and *.json in it, and
// graph.yaml, graph.yml and graph.json in the folders right below. It returns the
// readable files, by path, the paths of files that are no graphs (see
// isGraphDocument), and all *FileErrors joined.
func LoadDir(dir string) (files []File, others []string, err error) {
	paths, err := findFiles(dir)
	if err != nil {
		return nil, nil, err
	}
	var failures []error
	for _, path := range paths {
		data, err := os.ReadFile(path) //nolint:gosec // the operator names the folder
		if err != nil {
			failures = append(failures, &FileError{Path: path, Err: err})
			continue
		}
		if !isGraphDocument(path, data) {
			others = append(others, path)
			continue
		}
		file, err := parseFile(path, data)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		files = append(files, file)
	}
	return files, others, errors.Join(failures...)
}

func findFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, &FileError{Path: dir, Err: err}
	}
	var paths []string
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case strings.HasPrefix(entry.Name(), "."):
		case !entry.IsDir() && isGraphFile(entry.Name()):
			paths = append(paths, path)
		default:
			for _, name := range []string{"graph.yaml", "graph.yml", "graph.json"} {
				inside := filepath.Join(path, name)
				if info, err := os.Stat(inside); err == nil && !info.IsDir() {
					paths = append(paths, inside)
				}
			}
		}
	}
	slices.Sort(paths)
	return paths, nil
}

func isGraphFile(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// Compile compiles the graph of a file. Problems of the text and of the graph are
// returned together, in a *FileError around a *graph.BuildError.
func (f File) Compile(env graph.Env) (*graph.Graph, error) {
	env.Line = f.Positions.Line
	g, err := graph.Compile(f.Spec, env)
	if f.Err == nil && err == nil {
		return g, nil
	}
	all := &graph.BuildError{Graph: f.Spec.Name}
	named := make(map[string]bool)
	lost := false
	for _, cause := range []error{f.Err, err} {
		var build *graph.BuildError
		if !errors.As(cause, &build) {
			continue
		}
		for _, p := range build.Problems {
			// Wrong fields are not reported again as missing, nor are
			// consequences of edges that could not be read.
			if !named[p.Path] && (!lost || !p.IsConsequence()) {
				all.Problems = append(all.Problems, p)
			}
		}
		for _, p := range build.Problems {
			named[p.Path] = true
			lost = lost || p.IsConnectionProblem()
		}
	}
	slices.SortStableFunc(all.Problems, func(x, y graph.Problem) int { return x.Line - y.Line })
	return nil, &FileError{Path: f.Path, Err: all}
}
