package worker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/worker/internal/document"
)

// addFile adds a graph file that the worker brings along, and its functions.
func (s *served) addFile(field string, n *Nodes) error {
	d, err := document.Parse(n.File)
	if err != nil {
		return fmt.Errorf("worker: %s.File: %w", field, err)
	}
	switch {
	case n.Graph != "" && n.Graph != d.Name:
		return &OptionError{Field: field + ".Graph", Reason: fmt.Sprintf("is %q, and the file has the graph %q: want the same, or none", n.Graph, d.Name)}
	case n.Version != "":
		return &OptionError{Field: field + ".Version", Reason: fmt.Sprintf("is %q: want none with a File, which may have a version itself", n.Version)}
	case s.code[d.Name] != nil:
		return &OptionError{Field: field + ".File", Reason: fmt.Sprintf("has the graph %q, which is served already: want each graph once", d.Name)}
	}
	if err := n.checkFunctions(field); err != nil {
		return err
	}
	if err := n.checkNames(field, d); err != nil {
		return err
	}
	s.bring(d, &graphCode{nodes: maps.Clone(n.Functions), routers: maps.Clone(n.Routers), reducers: maps.Clone(n.Reducers), document: string(n.File)})
	return nil
}

// checkFunctions refuses names without a function.
func (n *Nodes) checkFunctions(field string) error {
	refuse := func(kind, name string) error {
		return &OptionError{Field: field + "." + kind, Reason: fmt.Sprintf("has no function under %q: want a function", name)}
	}
	for name, f := range n.Functions {
		if f == nil {
			return refuse("Functions", name)
		}
	}
	for name, f := range n.Routers {
		if f == nil {
			return refuse("Routers", name)
		}
	}
	for name, f := range n.Reducers {
		if f == nil {
			return refuse("Reducers", name)
		}
	}
	return nil
}

// checkNames refuses functions that are not those that the file names.
func (n *Nodes) checkNames(field string, d *document.Document) error {
	if err := compareNames(field+".Functions", "remote nodes", d.Nodes, n.Functions); err != nil {
		return err
	}
	if err := compareNames(field+".Routers", "routers in workers", d.Routers, n.Routers); err != nil {
		return err
	}
	return compareNames(field+".Reducers", "functions of channels", d.Reducers, n.Reducers)
}

// compareNames refuses functions under other names than those of a file.
func compareNames[F graph.Func | graph.Reduce](field, what string, named []string, given map[string]F) error {
	has := slices.Sorted(maps.Keys(given))
	slices.Sort(named)
	named = slices.Compact(named)
	if slices.Equal(has, named) {
		return nil
	}
	want := "none"
	if len(named) > 0 {
		want = strings.Join(named, ", ")
	}
	return &OptionError{Field: field, Reason: fmt.Sprintf("has functions for [%s]: want one for each of the %s of the file: %s", strings.Join(has, ", "), what, want)}
}
