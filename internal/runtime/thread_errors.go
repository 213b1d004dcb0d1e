package runtime

import (
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// ThreadNotFoundError refuses a call about a thread that does not exist.
func ThreadNotFoundError(thread string) *Error {
	return Errorf(ReasonThreadNotFound, "no thread %q", tenant.ClientName(thread)).With("threadId", tenant.ClientName(thread))
}

// TranslateThreadError is TranslateStoreError for a call about one thread.
func TranslateThreadError(thread string, err error) error {
	if errors.Is(err, checkpoint.ErrThreadNotFound) {
		return ThreadNotFoundError(thread)
	}
	return TranslateStoreError(err)
}

// NodeNotFoundError refuses a call about a node that a graph does not have.
func NodeNotFoundError(g *graph.Graph, node string) *Error {
	return Errorf(ReasonNodeNotFound, "graph %q has no node %q", tenant.ClientName(g.Name), node).With("node", node)
}

// CheckOnlyGraph refuses a call about a thread of another graph than the only one that it
// may concern, as if there were no such thread; nil = any graph.
func CheckOnlyGraph(head *checkpoint.Head, only *string) error {
	if only == nil || head.Revision == 0 || head.Graph == *only {
		return nil
	}
	return ThreadNotFoundError(head.Thread)
}

// CheckExpected refuses a call that expects the thread at another checkpoint; "" = at
// any. The error is an *Error CHECKPOINT_CONFLICT.
func CheckExpected(head *checkpoint.Head, expected string) error {
	if expected == "" || expected == head.Checkpoint {
		return nil
	}
	return Errorf(ReasonCheckpointConflict, "the thread is at checkpoint %q, not at %q", head.Checkpoint, expected).
		With("current", head.Checkpoint)
}
