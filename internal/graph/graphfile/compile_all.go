package graphfile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/internal/graph"
)

// CompileAll compiles files that may use each other as subgraphs, in any order;
// other subgraphs are looked up in env. It returns the valid graphs in the order
// of the files, and all *FileErrors joined. Two files with the same graph and
// version, and graphs that contain each other, are wrong.
func CompileAll(files []File, env graph.Env) ([]*graph.Graph, error) {
	s := &fileSet{files: files, env: env, states: make([]compileState, len(files)), graphs: make([]*graph.Graph, len(files))}
	s.refuseDuplicates()
	for i := range files {
		s.compileFile(i)
	}
	var graphs []*graph.Graph
	for _, g := range s.graphs {
		if g != nil {
			graphs = append(graphs, g)
		}
	}
	return graphs, errors.Join(s.failures...)
}

type compileState int

const (
	notCompiled compileState = iota
	compiling
	compiled
)

// fileSet compiles the files that a file needs before the file itself.
type fileSet struct {
	files    []File
	env      graph.Env
	states   []compileState
	graphs   []*graph.Graph
	failures []error
}

func (s *fileSet) refuseDuplicates() {
	first := make(map[[2]string]int)
	for i, f := range s.files {
		key := [2]string{f.Spec.Name, f.Spec.Version}
		if j, taken := first[key]; taken && f.Spec.Name != "" {
			s.failFile(i, graph.Problem{
				Path: "graph", Reason: graph.ReasonDuplicateName, Line: f.Positions.Line("graph"),
				Message: fmt.Sprintf("graph %q is in %s already; rename it or give it a version", f.Spec.Name, s.files[j].Path),
			})
			continue
		}
		first[key] = i
	}
}

func (s *fileSet) failFile(i int, p graph.Problem) {
	s.states[i] = compiled
	s.failures = append(s.failures, &FileError{
		Path: s.files[i].Path,
		Err:  &graph.BuildError{Graph: s.files[i].Spec.Name, Problems: []graph.Problem{p}},
	})
}

// compileFile compiles the graphs that a file contains, and then the file. Graphs that
// contain each other are a problem.
func (s *fileSet) compileFile(i int) {
	if s.states[i] != notCompiled {
		return
	}
	s.states[i] = compiling
	for n := range s.files[i].Spec.Nodes {
		node := &s.files[i].Spec.Nodes[n]
		if node.Graph == nil {
			continue
		}
		j, ok := s.findFile(node.Graph.Name, node.Graph.Version)
		if !ok || j == i { // Compile itself reports both
			continue
		}
		if s.states[j] == compiling {
			path := "nodes." + node.Name + ".graph"
			s.failFile(i, graph.Problem{
				Path: path, Reason: graph.ReasonSubgraphCycle, Line: s.files[i].Positions.Line(path),
				Message: fmt.Sprintf("graphs %q and %q contain each other", s.files[i].Spec.Name, node.Graph.Name),
			})
			return
		}
		s.compileFile(j)
	}
	s.states[i] = compiled
	env := s.env
	env.Lookup = s.lookupGraph
	g, err := s.files[i].Compile(env)
	if err != nil {
		s.failures = append(s.failures, err)
		return
	}
	s.graphs[i] = g
}

// findFile returns the file of a graph, without a version the last file.
func (s *fileSet) findFile(name, version string) (int, bool) {
	for i, file := range slices.Backward(s.files) {
		if spec := file.Spec; spec.Name == name && (version == "" || spec.Version == version) {
			return i, true
		}
	}
	return 0, false
}

func (s *fileSet) lookupGraph(name, version string) (*graph.Graph, bool) {
	if i, ok := s.findFile(name, version); ok && s.graphs[i] != nil {
		return s.graphs[i], true
	}
	if s.env.Lookup != nil {
		return s.env.Lookup(name, version)
	}
	return nil, false
}
