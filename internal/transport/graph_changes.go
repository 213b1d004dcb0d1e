package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/permission"
)

// graphChanges decides who may put and delete graphs: what their content needs beside the
// method. It notes for the audit what they change.
type graphChanges struct {
	access    *permission.Authorizer // nil = every caller may change every graph
	graphs    Registry
	isAudited bool
}

// Names of the notes for the audit. Each text begins with the name of a graph, since a
// worker may bring several.
const (
	noteBefore  = "graph_before"      // the newest version before the change
	noteAfter   = "graph_after"       // the newest version after it, or that which was refused
	noteRefused = "graph_refused"     // a version that was refused
	noteRemoved = "removed_questions" // what the new version does not ask, asks otherwise or may pass by
)

// PutGraph puts a graph for a method, if the caller may. Errors: ACCESS_DENIED, and those
// of Registry.PutGraph.
func (c graphChanges) PutGraph(ctx context.Context, method string, put runtime.PutGraphRequest) (runtime.GraphEntry, error) {
	if c.access == nil && !c.isAudited {
		return c.graphs.PutGraph(ctx, put)
	}
	if err := c.checkNames(ctx, method, put); err != nil {
		return runtime.GraphEntry{}, err
	}
	var change graphChange // that was decided about last
	put.Approve = func(ctx context.Context, next *graph.Graph) (err error) {
		change, err = c.checkNewVersion(ctx, method, next)
		return err
	}
	entry, err := c.graphs.PutGraph(ctx, put)
	c.noteChange(ctx, &change)
	return entry, err
}

// DeleteGraph deletes versions of a graph for a method, if the caller may. Errors:
// ACCESS_DENIED, and those of Registry.DeleteGraph.
func (c graphChanges) DeleteGraph(ctx context.Context, method string, d runtime.DeleteGraphRequest) ([]string, error) {
	if c.access == nil && !c.isAudited {
		return c.graphs.DeleteGraph(ctx, d)
	}
	var change graphChange // that was decided about last
	d.Approve = func(ctx context.Context) (err error) {
		change, err = c.checkDelete(ctx, method, d.Name, d.Version)
		return err
	}
	gone, err := c.graphs.DeleteGraph(ctx, d)
	c.noteChange(ctx, &change)
	return gone, err
}

// checkNames decides about the graph and about those inside it by their names, before
// anything is looked up: whether there is such a graph must not show.
func (c graphChanges) checkNames(ctx context.Context, method string, put runtime.PutGraphRequest) error {
	spec, err := c.graphs.ParseGraph(put)
	if err != nil {
		return err
	}
	if err := c.access.CheckGraph(ctx, method, spec.Name); err != nil {
		return err
	}
	inside := method
	if method == graphdv1.RegistryService_PutGraph_FullMethodName {
		inside = graphdv1.RegistryService_GetGraph_FullMethodName
	}
	for i := range spec.Nodes {
		if sub := spec.Nodes[i].Graph; sub != nil && sub.Name != spec.Name {
			if err := c.access.CheckGraph(ctx, inside, sub.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// graphChange is a change of the newest version of a graph.
type graphChange struct {
	graph         string   // "" = there is none to note
	before, after string   // newest versions, "" = none
	removed       []string // questions, each once
	refused       string   // the version that was refused, "" = none
}

// checkNewVersion decides about a version that the server does not have.
func (c graphChanges) checkNewVersion(ctx context.Context, method string, g *graph.Graph) (graphChange, error) {
	var rights []permission.Right
	if method == graphdv1.WorkerService_Connect_FullMethodName {
		rights = append(rights, permission.BringGraphs)
	}
	newest, unreadable, err := c.findNewest(ctx, g.Name)
	if err != nil {
		return graphChange{}, err
	}
	d := graphChange{graph: g.Name, after: g.Version, removed: unreadable}
	if newest != nil {
		d.before, d.removed = newest.Graph.Version, append(d.removed, graph.ListRemovedQuestions(newest.Graph.Spec, g.Spec)...)
	}
	if len(d.removed) > 0 {
		rights = append(rights, permission.ApproveChanges)
	}
	err = explainRemoved(c.access.CheckGraph(ctx, method, g.Name, rights...), d.removed)
	if err != nil {
		d.refused = g.Version
	}
	return d, err
}

// noteChange notes a change for the audit.
func (c graphChanges) noteChange(ctx context.Context, d *graphChange) {
	if !c.isAudited || d.graph == "" {
		return
	}
	c.noteVersion(ctx, noteBefore, d.graph, d.before)
	c.noteVersion(ctx, noteAfter, d.graph, d.after)
	for _, question := range d.removed {
		interceptor.NoteForAudit(ctx, noteRemoved, tenant.ClientName(d.graph)+": "+question)
	}
	c.noteVersion(ctx, noteRefused, d.graph, d.refused)
}

// noteVersion notes a version of a graph for the audit, "" = none. The record has the
// tenant.
func (graphChanges) noteVersion(ctx context.Context, note, name, version string) {
	if version != "" {
		interceptor.NoteForAudit(ctx, note, tenant.ClientName(name)+"@"+version)
	}
}

// checkDelete decides about the deletion of versions of a graph, "" = all, which removes
// their questions. Errors: ACCESS_DENIED, and those of the store.
func (c graphChanges) checkDelete(ctx context.Context, method, name, version string) (graphChange, error) {
	refused := c.access.CheckGraph(ctx, method, name, permission.ApproveChanges)
	if refused == nil && !c.isAudited {
		return graphChange{}, nil
	}
	most := 0 // a refusal names what the rights are for, whatever it costs
	if refused == nil {
		most = maxNotedVersions
	}
	d, err := c.findDeletion(ctx, name, version, most)
	if err != nil {
		return graphChange{}, err
	}
	if refused == nil || len(d.removed) == 0 {
		return d, nil
	}
	return d, explainRemoved(refused, d.removed)
}

// maxNotedVersions bounds the deleted versions whose questions are read for the audit
// alone.
const maxNotedVersions = 16

// findDeletion returns what goes with versions of a graph, "" = all. It reads the newest
// of them up to most, 0 = all.
func (c graphChanges) findDeletion(ctx context.Context, name, version string, most int) (d graphChange, err error) {
	newest, unreadable, err := c.findNewest(ctx, name)
	if err != nil || newest == nil {
		return graphChange{graph: name, removed: unreadable}, err
	}
	d.graph = name
	d.before = newest.Graph.Version
	var left *graph.Graph
	versions := newest.Versions
	if version != "" {
		i := slices.Index(versions, version)
		if i < 0 {
			d.after = d.before
			return d, nil
		}
		if left, err = c.findNewestBeside(ctx, newest, version); err != nil {
			return d, err
		}
		if left != nil {
			d.after = left.Version
		}
		versions = versions[i : i+1]
	}
	if older := len(versions) - most; most > 0 && older > 0 {
		d.addQuestions(fmt.Sprintf("what %d older versions ask", older))
		versions = versions[older:]
	}
	for _, v := range versions {
		doomed, err := c.findGraph(ctx, name, v)
		switch {
		case err != nil:
			return d, err
		case doomed == nil: // it does not compile here
			d.addQuestions("what version " + v + " asks, which can't be read")
		case left == nil:
			d.addQuestions(graph.ListQuestions(doomed.Graph.Spec)...)
		default:
			d.addQuestions(graph.ListRemovedQuestions(doomed.Graph.Spec, left.Spec)...)
		}
	}
	return d, nil
}

// addQuestions adds questions that are not there yet.
func (d *graphChange) addQuestions(list ...string) {
	for _, question := range list {
		if !slices.Contains(d.removed, question) {
			d.removed = append(d.removed, question)
		}
	}
}

// findNewestBeside returns the version that is the newest without another one, nil for
// none.
func (c graphChanges) findNewestBeside(ctx context.Context, newest *runtime.GraphEntry, version string) (*graph.Graph, error) {
	if newest.Graph.Version != version {
		return newest.Graph, nil
	}
	others := slices.DeleteFunc(slices.Clone(newest.Versions), func(v string) bool { return v == version })
	if len(others) == 0 {
		return nil, nil
	}
	entry, err := c.findGraph(ctx, newest.Graph.Name, others[len(others)-1])
	if err != nil || entry == nil {
		return nil, err
	}
	return entry.Graph, nil
}

// findNewest returns the newest version of a graph that compiles here, nil for none. Where a
// newer one does not compile, unreadable says so: what that one asks is not known, so a
// change counts as one that removes it.
func (c graphChanges) findNewest(ctx context.Context, name string) (newest *runtime.GraphEntry, unreadable []string, err error) {
	entry, err := c.graphs.GetGraph(ctx, name, "")
	switch {
	case errors.Is(err, &runtime.Error{Reason: runtime.ReasonGraphNotFound}):
		return nil, nil, nil
	case errors.Is(err, &runtime.Error{Reason: runtime.ReasonGraphVersionUnavailable}):
		return nil, []string{"what its versions ask, which can't be read"}, nil
	case err != nil:
		return nil, nil, err
	case entry.Skipped != "":
		unreadable = []string{"what version " + entry.Skipped + " asks, which can't be read"}
	}
	return &entry, unreadable, nil
}

// findGraph returns a version of a graph, nil if there is none that can be used.
func (c graphChanges) findGraph(ctx context.Context, name, version string) (*runtime.GraphEntry, error) {
	entry, err := c.graphs.GetGraph(ctx, name, version)
	for _, missing := range []string{runtime.ReasonGraphNotFound, runtime.ReasonGraphVersionUnavailable} {
		if errors.Is(err, &runtime.Error{Reason: missing}) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &entry, nil
}

// explainRemoved adds to a refusal which questions the change would remove.
func explainRemoved(err error, removed []string) error {
	refused, ok := errors.AsType[*runtime.Error](err)
	if !ok || len(removed) == 0 {
		return err
	}
	const most = 3
	text, more := removed, ""
	if len(text) > most {
		text, more = text[:most], ", and more"
	}
	return runtime.Errorf(refused.Reason, "%s: the change removes or may pass by %s%s", refused.Message, strings.Join(text, ", "), more).
		With("rule", refused.Meta["rule"]).With("graph", refused.Meta["graph"])
}
