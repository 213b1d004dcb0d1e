package admission

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/query"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// checkSettings refuses settings that the graph of a run knows nothing of.
func checkSettings(ctx context.Context, schemas runtime.Schemas, g *graph.Graph, s *runtime.RunSettings) error {
	for _, list := range [][]string{s.InterruptBefore, s.InterruptAfter} {
		for _, n := range list {
			if _, ok := g.Node(n); !ok && n != graph.AllNodes {
				return runtime.NodeNotFoundError(g, n)
			}
		}
	}
	return checkSchema(ctx, schemas, g.Spec.ContextSchema, s.Context, runtime.ReasonInputSchemaMismatch, "resume.settings.context")
}

// addLabels adds the labels of a resume to the run.
func (r *resumeCall) addLabels(run *checkpoint.Run) error {
	if len(r.req.Metadata) == 0 {
		return nil
	}
	labels, err := runtime.ChangeLabels("resume.metadata", run.Metadata, r.req.Metadata, nil, false)
	if err == nil {
		run.Metadata = labels
	}
	return err
}

// applySettings changes the settings of the rest of a resumed run.
func (r *resumeCall) applySettings(ctx context.Context, l *superstep.Loop) error {
	if err := r.addLabels(l.Run()); err != nil {
		return err
	}
	if r.req.Settings == nil {
		return nil
	}
	if err := checkSettings(ctx, r.opts.Schemas, l.Graph(), r.req.Settings); err != nil {
		return err
	}
	l.ApplySettings(r.req.Settings)
	return nil
}

// storeSettings stores labels and settings for the server that starts the run
// later.
func (r *resumeCall) storeSettings(ctx context.Context, reader *query.Reader, t *commit.Tx) error {
	if (r.req.Settings == nil && len(r.req.Metadata) == 0) || t.Head.State == checkpoint.ThreadBusy {
		return nil
	}
	at := slices.IndexFunc(t.Runs, func(run checkpoint.Run) bool { return run.ID == t.Head.Run })
	if at < 0 {
		run, err := reader.StoredRun(ctx, t.Thread, t.Head.Run)
		if err != nil {
			return runtime.TranslateStoreError(err)
		}
		at, t.Runs = len(t.Runs), append(t.Runs, run)
	}
	run := &t.Runs[at]
	if err := r.addLabels(run); err != nil {
		return err
	}
	if r.req.Settings == nil {
		return nil
	}
	g, err := reader.FindGraph(run.Graph, run.Version)
	if err != nil {
		return err
	}
	if err := checkSettings(ctx, r.opts.Schemas, g, r.req.Settings); err != nil {
		return err
	}
	r.req.Settings.ApplyTo(&run.Request)
	return nil
}
