package engine_test

import (
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
)

// handOnAndAnswer returns what clients do with the question of a node that ben answers in the
// place of ana.
func handOnAndAnswer(node string) func(c *cluster) {
	return func(c *cluster) {
		r := c.beginRun("r")
		c.waitRun(r)
		q := c.findOpen(node)
		c.claim(ana, q)
		c.comment(ana, q, "why?")
		c.comment(ben, q, "because")
		c.release(q)
		c.assign(q)
		c.delegate(q, ben)
		c.delegate(q, ana)
		c.delegate(q, ben)
		c.checkTags()
		c.answerToEnd(r, 9)
		answered, err := c.store.Interrupt(context.Background(), q.Thread, q.Interrupt)
		require.NoError(c.t, err)
		entries := c.describeFullTrail(&answered)
		require.Equal(c.t, []string{
			"asked", "claimed ana", "commented ana why?", "commented ben because", "released ana not mine", "changed eve",
			"delegated ana", "delegated ana", "delegated ana",
		}, entries[:min(9, len(entries))])
	}
}

// findOpen returns the open question of a node.
func (c *cluster) findOpen(node string) runtime.Question {
	c.t.Helper()
	open := c.listOpen("t")
	at := slices.IndexFunc(open, func(q checkpoint.Interrupt) bool { return q.Node == node })
	require.NotEqual(c.t, -1, at, "%s does not ask", node)
	return runtime.Question{Thread: "t", Interrupt: open[at].ID}
}

func (c *cluster) claim(by runtime.Actor, q runtime.Question) {
	c.t.Helper()
	c.callUntilAnswered(func(ctx context.Context, e *engine.Engine) error {
		_, err := e.ClaimInterrupt(ctx, runtime.ClaimRequest{Question: q, Duration: time.Hour, By: by})
		return err
	})
}

// release gives up a claim of ana.
func (c *cluster) release(q runtime.Question) {
	c.t.Helper()
	c.callUntilAnswered(func(ctx context.Context, e *engine.Engine) error {
		_, err := e.ReleaseInterrupt(ctx, runtime.ReleaseRequest{Question: q, Note: "not mine", By: ana})
		return err
	})
}

// comment says a text, which is the request id, too.
func (c *cluster) comment(by runtime.Actor, q runtime.Question, text string) {
	c.t.Helper()
	c.callUntilAnswered(func(ctx context.Context, e *engine.Engine) error {
		_, err := e.CommentInterrupt(ctx, runtime.CommentRequest{Question: q, Text: text, RequestID: text, By: by})
		return err
	})
}

// delegate hands the part of ana to another user, or back to ana.
func (c *cluster) delegate(q runtime.Question, to runtime.Actor) {
	c.t.Helper()
	c.callUntilAnswered(func(ctx context.Context, e *engine.Engine) error {
		_, err := e.DelegateInterrupt(ctx, runtime.DelegateRequest{Question: q, To: to.Name, By: ana})
		return err
	})
}

// assign assigns a question to ana for an hour. The change has no request id: a client that
// repeats it looks whether it was made.
func (c *cluster) assign(q runtime.Question) {
	c.t.Helper()
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	c.callUntilAnswered(func(ctx context.Context, e *engine.Engine) error {
		now, err := e.Interrupt(ctx, q.Thread, q.Interrupt)
		if err != nil || now.Expires.Equal(until) {
			return err
		}
		_, err = e.UpdateInterrupt(ctx, runtime.UpdateInterruptRequest{
			Question: q, Etag: now.Revision, Assignees: &[]string{ana.Name}, Expires: &until, By: eve,
		})
		return err
	})
}
