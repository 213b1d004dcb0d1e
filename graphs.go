package graphd

import (
	"errors"
	"fmt"

	"github.com/graphd-dev/graphd/graph"
	compiler "github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
)

// buildGraphs builds graphs and their subgraphs, which come first. The error has all that is wrong
// with them, as far as it shows without a store.
func buildGraphs(builders []*graph.Builder) ([]*graph.Graph, error) {
	s := &graphSet{known: make(map[string]string), wrong: make(map[string]*graph.DescriptionError)}
	for i, b := range builders {
		s.addBuilder(i, b)
	}
	if err := s.checkGraphs(); err != nil {
		s.others = append(s.others, err)
	}
	return s.graphs, s.joinErrors()
}

// graphSet collects graphs, and all that is wrong with them.
type graphSet struct {
	graphs []*graph.Graph
	known  map[string]string // their documents
	names  []string          // of wrong graphs, in order
	wrong  map[string]*graph.DescriptionError
	others []error
}

func (s *graphSet) addBuilder(i int, b *graph.Builder) {
	if b == nil {
		s.others = append(s.others, &OptionError{Reason: fmt.Sprintf("graph %d is nil", i+1), Remedy: "want graphs of graph.New"})
		return
	}
	g, err := b.Build()
	s.addWrong(err)
	s.addGraph(g, false)
}

// addGraph adds a graph behind its subgraphs. Only the subgraph of several graphs may be there before.
func (s *graphSet) addGraph(g *graph.Graph, isSubgraph bool) {
	text, err := g.Document(graph.InProcess)
	if err != nil {
		s.others = append(s.others, fmt.Errorf("the graph %q: %w", g.Name(), err))
		return
	}
	if known, isKnown := s.known[g.Name()]; isKnown {
		if !isSubgraph || known != string(text) {
			s.others = append(s.others,
				&OptionError{Reason: fmt.Sprintf("there are two graphs %q", g.Name()), Remedy: "want each name once, also among subgraphs"})
		}
		return
	}
	s.known[g.Name()] = string(text)
	for _, sub := range g.Subgraphs() {
		s.addGraph(sub, true)
	}
	s.graphs = append(s.graphs, g)
}

// addWrong adds the errors of Build, once for each graph.
func (s *graphSet) addWrong(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			s.addWrong(one)
		}
		return
	}
	if wrong, ok := errors.AsType[*graph.DescriptionError](err); ok && s.wrong[wrong.Graph] == nil {
		s.names = append(s.names, wrong.Graph)
		s.wrong[wrong.Graph] = wrong
	}
}

// checkGraphs checks the graphs as a server does that knows their documents alone.
func (s *graphSet) checkGraphs() error {
	files := make([]graphfile.File, 0, len(s.graphs))
	for _, g := range s.graphs {
		spec, positions, err := graphfile.Parse(g.Name()+".json", []byte(s.known[g.Name()]))
		if spec == nil {
			return fmt.Errorf("the graph %q: %w", g.Name(), err)
		}
		files = append(files, graphfile.File{Path: g.Name(), Spec: spec, Positions: positions, Err: err})
	}
	_, err := graphfile.CompileAll(files, compiler.Env{})
	s.addProblems(err)
	return nil
}

// addProblems adds what the compiler has found. It knows no graph that is wrong itself.
func (s *graphSet) addProblems(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			s.addProblems(one)
		}
		return
	}
	build, ok := errors.AsType[*compiler.BuildError](err)
	if !ok {
		return
	}
	for _, p := range build.Problems {
		if p.Reason != compiler.ReasonUnknownGraph {
			s.addProblem(build.Graph, graph.Problem{Field: p.Path, Description: p.Message})
		}
	}
}

func (s *graphSet) addProblem(name string, p graph.Problem) {
	if s.wrong[name] == nil {
		s.names = append(s.names, name)
		s.wrong[name] = &graph.DescriptionError{Graph: name}
	}
	s.wrong[name].Problems = append(s.wrong[name].Problems, p)
}

// joinErrors returns all that is wrong; one error alone stays what it is.
func (s *graphSet) joinErrors() error {
	all := s.others
	for _, name := range s.names {
		all = append(all, s.wrong[name])
	}
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}
