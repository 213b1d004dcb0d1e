package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/dump"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/schema"
	"github.com/graphd-dev/graphd/internal/trail"
)

// Secrets of the tests. None of them may be shown anywhere.
const (
	askedSecret   = "asked-4111"
	answerSecret  = "answer-7777"
	defaultSecret = "default-3333"
)

func newSecretAsk() pregel.Ask {
	return pregel.Ask{Value: `{"card": {"number": "` + askedSecret + `"}, "amount": 9007199254740993}`, Secret: []string{"/card"}}
}

func newSecretAnswer(text string) payload.JSON {
	return payload.JSON(fmt.Sprintf(`{"ok": true, "card": %q}`, text))
}

// secretNode asks, and writes no secret.
func secretNode(ask pregel.Ask, given *[]string) nodeFunc {
	return func(_ context.Context, c *nodeCall) pregel.Result {
		q := ask
		if err := q.HideSecrets(); err != nil {
			return failedResult(err.Error())
		}
		q.SetDriftDefaults(c.Graph.Spec)
		for _, a := range c.Journal.Answers {
			if a.Matches(&q) {
				*given = append(*given, string(a.Value))
				return pregel.Result{Update: `{"paid":true}`}
			}
		}
		return pregel.Result{Asks: []pregel.Ask{ask}}
	}
}

// secretCase is a thread that asks with secret parts.
type secretCase struct {
	*voteCase

	given []string // what the node was given
	logs  *observer.ObservedLogs
}

func newSecretCase(t *testing.T, ask pregel.Ask) *secretCase {
	t.Helper()
	c := &secretCase{}
	conditions, err := expr.NewConditions(expr.Options{})
	require.NoError(t, err)
	core, logs := observer.New(zapcore.DebugLevel)
	c.logs = logs
	f := &fixture{
		t: t, store: guardTrails(t, memory.New(memory.Options{})), graphs: graphCatalog{},
		opts:  engine.Options{Conditions: conditions, KnowsCallers: true, KeepsSecrets: true, Logger: zap.New(core)},
		nodes: &nodeExecutor{funcs: map[string]nodeFunc{"pay": secretNode(ask, &c.given)}},
	}
	f.compileGraph(chainSpec("g", []graph.ChannelSpec{{Name: "paid"}}, "pay"))
	startWithSchemas(f)
	t.Cleanup(func() { closeEngine(t, f.engine) })
	run := f.beginAndWait(runtime.StartRequest{
		Thread: "t", CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: "{}"}, By: runtime.Actor{Name: "eva"},
	})
	require.Equal(t, checkpoint.RunInterrupted, run.State, "%+v", run.Failure)
	c.voteCase = &voteCase{fixture: f}
	return c
}

// startWithSchemas starts an engine that checks answers against their schemas.
func startWithSchemas(f *fixture) {
	f.engine = engine.New(context.Background(), f.store, f.graphs, f.nodes, schema.New(schema.Limits{}), f.opts)
}

func (c *secretCase) reveal(who string, pointers ...string) (runtime.Revealed, error) {
	return c.engine.RevealInterrupt(c.t.Context(), runtime.RevealRequest{Question: c.name(), Pointers: pointers, Note: "to check", By: actor(who)})
}

// requireHidden checks that no secret is in anything that is shown of the thread, and in no line of
// the log.
func (c *secretCase) requireHidden() {
	c.t.Helper()
	var shown strings.Builder
	add := func(v any, err error) {
		require.NoError(c.t, err)
		fmt.Fprintf(&shown, "%+v\n", v)
	}
	ctx := c.t.Context()
	q := c.question()
	entries, err := c.engine.ListTrail(ctx, c.name())
	add(entries, err)
	add(c.engine.State(ctx, runtime.StateRequest{Thread: "t"}))
	add(c.store.Events(ctx, "t", 0, 0))
	add(c.engine.WaitRun(ctx, "t", q.Run))
	add(q, nil)
	fmt.Fprintln(&shown, q.Value, q.Response, q.Default, q.Votes)
	var text bytes.Buffer
	require.NoError(c.t, dump.WriteThread(ctx, &text, c.store, "t"))
	shown.Write(text.Bytes())
	for _, line := range c.logs.All() {
		encoded, err := zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "m"}).EncodeEntry(line.Entry, line.Context)
		require.NoError(c.t, err)
		shown.Write(encoded.Bytes())
	}
	for _, secret := range []string{askedSecret, answerSecret, defaultSecret} {
		require.NotContains(c.t, shown.String(), secret)
	}
	events, err := c.store.Events(ctx, "t", 0, 0)
	require.NoError(c.t, err)
	for i := range events {
		for j := range events[i].Interrupts {
			require.False(c.t, events[i].Interrupts[j].HidesParts(), "an event keeps secret parts")
		}
	}
}

func TestSecretParts(t *testing.T) {
	c := newSecretCase(t, newSecretAsk())
	q := c.question()
	require.Equal(t, []payload.JSON{`{"card": {"__redacted__": true}, "amount": 9007199254740993}`}, []payload.JSON{q.Value})
	require.Equal(t, payload.ShownDigest(payload.ShownParts("", q.Value, "", nil)), q.ShownDigest)
	c.requireHidden()

	run := c.answerSingle("t", string(newSecretAnswer(answerSecret)))
	require.Equal(t, checkpoint.RunSucceeded, run.State, "%+v", run.Failure)
	require.Equal(t, []string{string(newSecretAnswer(answerSecret))}, c.given)
	q = c.question()
	require.Equal(t, []payload.JSON{`{"ok": true, "card": {"__redacted__": true}}`}, []payload.JSON{q.Response})
	c.requireHidden()
}

func TestRevealInterrupt(t *testing.T) {
	ask := newSecretAsk()
	ask.Policy = &approval.Policy{Users: []string{"ben", "dora"}, RevealUsers: []string{"ana"}}
	c := newSecretCase(t, ask)
	_, err := c.reveal("ben")
	require.Equal(t, approval.RuleReveal, errorMeta(err, "rule"))
	require.NotContains(t, err.Error(), askedSecret)
	require.Equal(t, []string{"asked"}, c.trail())
	seen, err := c.reveal("ana")
	require.NoError(t, err)
	require.Equal(t, ask.Value, seen.Value)
	require.Equal(t, trail.Revealed, seen.Entry.Kind)
	require.Equal(t, []string{"/card"}, seen.Entry.Fields)
	require.Equal(t, []string{"asked", "revealed ana to check"}, c.trail())
	require.Equal(t, c.question().Trail.Digest, seen.Entry.Digest)
	require.NotContains(t, fmt.Sprintf("%v %+v", seen, seen), askedSecret)
	_, err = c.reveal("ana", "/amount")
	require.Equal(t, runtime.ReasonInvalidField, errorReason(err))

	c.mustSay("ben: " + string(newSecretAnswer(answerSecret)))
	seen, err = c.reveal("ana")
	require.NoError(t, err)
	require.Equal(t, newSecretAnswer(answerSecret), seen.Response)
	require.Equal(t, []string{
		"asked", "revealed ana to check", `voted ben {"ok":true,"card":{"__redacted__":true}}`, `answered ben {"ok":true,"card":{"__redacted__":true}}`, "used",
		"revealed ana to check",
	}, c.trail())
	c.requireHidden()
}

// Without reveal in the policy, who may answer sees the question, and of answers only the own one.
func TestRevealersWithoutAPolicyForThem(t *testing.T) {
	ask := newSecretAsk()
	ask.Policy = &approval.Policy{Users: []string{"ana", "ben"}, Approvals: 2}
	c := newSecretCase(t, ask)
	_, err := c.reveal("dora")
	require.Equal(t, approval.RuleGroup, errorMeta(err, "rule"))
	c.mustSay("ana: " + string(newSecretAnswer("another-1")))
	c.mustSay("ben: " + string(newSecretAnswer(answerSecret)))
	require.Equal(t, checkpoint.InterruptOpen, c.question().State, "the votes differ where it is secret")
	c.mustSay("ben: " + string(newSecretAnswer(answerSecret)))
	require.Len(t, c.trail(), 3, "the same vote again")
	c.mustSay("ana: " + string(newSecretAnswer(answerSecret)))
	require.Equal(t, []string{string(newSecretAnswer(answerSecret))}, c.given)
	for who, want := range map[string]payload.JSON{"ana": newSecretAnswer(answerSecret), "ben": `{"ok": true, "card": {"__redacted__": true}}`} {
		seen, err := c.reveal(who)
		require.NoError(t, err)
		require.Equal(t, ask.Value, seen.Value)
		require.Equal(t, want, seen.Response, who)
	}
	c.requireHidden()
}

func TestRevealOfAPlainQuestion(t *testing.T) {
	c := newSecretCase(t, newSecretAsk())
	c.answerSingle("t", string(newSecretAnswer(answerSecret)))
	q := c.question()
	seen, err := c.reveal("ana")
	require.NoError(t, err)
	require.NotContains(t, string(seen.Response), answerSecret, "it is the answer of another caller")
	entries, err := c.engine.ListTrail(t.Context(), c.name())
	require.NoError(t, err)
	require.Len(t, entries, 4)
	require.Equal(t, q.Updated.UTC(), entries[2].Time, "the entries of before keep their times")
	require.True(t, q.Updated.Equal(c.question().Updated))

	plain := newSecretCase(t, pregel.Ask{Value: `"pay?"`})
	_, err = plain.reveal("ana")
	require.Equal(t, runtime.ReasonInvalidField, errorReason(err))
	require.Equal(t, []string{"asked"}, plain.trail())
}

func TestRevealIsRefusedByAFullTrail(t *testing.T) {
	c := newSecretCase(t, newSecretAsk())
	for range 100 {
		_, err := c.engine.RevealInterrupt(t.Context(), runtime.RevealRequest{Question: c.name(), Note: strings.Repeat("x", 4096), By: actor("ana")})
		if err == nil {
			continue
		}
		require.Equal(t, runtime.ReasonTrailFull, errorReason(err))
		require.NotContains(t, err.Error(), askedSecret)
		log := c.question().Trail
		require.LessOrEqual(t, log.Size(), trail.MaxBytes)
		return
	}
	require.Fail(t, "the trail never became full")
}

// A node that asks with another secret is not given the answer, and the failure names the place only.
func TestAnotherSecretIsDrift(t *testing.T) {
	for name, drift := range map[string]checkpoint.Drift{"fails": checkpoint.DriftFail, "asks again": checkpoint.DriftAskAgain, "accepts": checkpoint.DriftAccept} {
		t.Run(name, func(t *testing.T) {
			ask := newSecretAsk()
			ask.Drift = drift
			c := newSecretCase(t, ask)
			first := c.question()
			other := ask
			other.Value = `{"card": {"number": "another-9999"}, "amount": 9007199254740993}`
			code := secretNode(other, &c.given)
			c.nodes.funcs["pay"] = func(ctx context.Context, n *nodeCall) pregel.Result {
				if r := code(ctx, n); len(r.Asks) == 0 || drift != checkpoint.DriftAccept {
					return r
				}
				q := other
				require.NoError(t, q.HideSecrets())
				c.given = append(c.given, string(n.Journal.Answers[0].Value))
				return pregel.Result{Update: `{"paid":true}`, UsedAnswers: []pregel.UsedAnswer{{AskedDigest: q.ShownDigest(), Asked: &q}}}
			}
			run := c.answerSingle("t", string(newSecretAnswer(answerSecret)))
			list, err := c.engine.Interrupts(t.Context(), nil, checkpoint.InterruptQuery{Thread: "t"})
			require.NoError(t, err)
			switch drift {
			case checkpoint.DriftFail:
				require.Equal(t, checkpoint.RunFailed, run.State)
				require.Equal(t, runtime.FailedNonDeterministic, run.Failure.Reason)
				require.Equal(t, "/card", run.Failure.Details["differs"])
				require.Contains(t, run.Failure.Message, "/card (secret)")
				require.NotContains(t, fmt.Sprint(run.Failure), "another-9999")
				require.NotContains(t, fmt.Sprint(run.Failure), askedSecret)
			case checkpoint.DriftAskAgain:
				require.Equal(t, checkpoint.RunInterrupted, run.State)
				require.Len(t, list, 2)
				at := slices.IndexFunc(list, func(q checkpoint.Interrupt) bool { return q.Replaces == first.ID })
				require.Equal(t, []string{"/card"}, list[at].Differs)
			default:
				require.Equal(t, checkpoint.RunSucceeded, run.State, "%+v", run.Failure)
				require.Equal(t, []string{"/card"}, list[0].Accepted)
			}
			require.Equal(t, drift == checkpoint.DriftAccept, len(c.given) > 0)
		})
	}
}

// A worker that has not compared the secret parts has used the answer for something else.
func TestUsedAnswersNameTheDigestOfSecrets(t *testing.T) {
	for name, known := range map[string]bool{"compared": true, "not compared": false} {
		t.Run(name, func(t *testing.T) {
			c := newSecretCase(t, newSecretAsk())
			c.nodes.funcs["pay"] = func(_ context.Context, n *nodeCall) pregel.Result {
				a := &n.Journal.Answers[0]
				require.Len(t, a.HiddenDigest, 64)
				use := pregel.UsedAnswer{AskedDigest: a.ShownDigest}
				if known {
					use.HiddenDigest = a.HiddenDigest
				}
				return pregel.Result{Update: `{"paid":true}`, UsedAnswers: []pregel.UsedAnswer{use}}
			}
			run := c.answerSingle("t", string(newSecretAnswer(answerSecret)))
			require.Equal(t, known, run.State == checkpoint.RunSucceeded, "%+v", run.Failure)
		})
	}
}

func TestDigestsOfSecretsAreBoundToTheirQuestion(t *testing.T) {
	one, other := newSecretAsk(), newSecretAsk()
	require.NoError(t, one.HideSecrets())
	require.NoError(t, other.HideSecrets())
	require.Equal(t, one.HiddenDigest("q1"), other.HiddenDigest("q1"))
	require.NotEqual(t, one.HiddenDigest("q1"), other.HiddenDigest("q2"))
	open := pregel.Ask{Value: one.Value}
	require.Empty(t, open.HiddenDigest("q1"))
}

func TestSchemaErrorsRepeatNoSecrets(t *testing.T) {
	ask := newSecretAsk()
	ask.Schema = `{"type":"object","required":["card","by"],"properties":{"card":{"type":"string","maxLength":4,"enum":["1"]},"ok":{"const":true}},
		"additionalProperties":false,"not":{"properties":{"card":{"pattern":"^answer"}},"required":["card"]}}`
	c := newSecretCase(t, ask)
	for _, value := range []payload.JSON{newSecretAnswer(answerSecret), `{"card":{"` + answerSecret + `":1}}`, `{"card":["` + answerSecret + `"],"by":1}`} {
		_, err := c.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", Single: &runtime.Response{Value: value}})
		require.Equal(t, runtime.ReasonResponseSchemaMismatch, errorReason(err))
		require.NotContains(t, fmt.Sprintf("%+v", err), answerSecret)
		refused, _ := errors.AsType[*runtime.Error](err)
		require.Contains(t, fmt.Sprint(refused.Violations), ".value/card")
		require.NotContains(t, fmt.Sprint(refused.Violations), answerSecret)
	}
	c.requireHidden()
}

func TestConditionErrorsRepeatNoSecrets(t *testing.T) {
	ask := newSecretAsk()
	ask.Policy = &approval.Policy{Agree: "int(answer.card) > 5"}
	c := newSecretCase(t, ask)
	_, err := c.say(c.engine, "ana: "+string(newSecretAnswer(answerSecret)))
	require.Equal(t, runtime.ReasonInvalidField, errorReason(err))
	require.NotContains(t, fmt.Sprintf("%+v", err), answerSecret)
	c.requireHidden()
}

func TestAskWithSecretsIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(a *pregel.Ask, o *engine.Options)
		want string
	}{
		"no keys":    {func(_ *pregel.Ask, o *engine.Options) { o.KeepsSecrets = false }, "--encryption-keys"},
		"no pointer": {func(a *pregel.Ask, _ *engine.Options) { a.Secret = []string{"card"} }, "is no JSON pointer"},
		"an overlap": {func(a *pregel.Ask, _ *engine.Options) { a.Secret = []string{"/card", "/card/number"} }, "overlap"},
		"nothing is secret": {func(a *pregel.Ask, _ *engine.Options) {
			a.Secret, a.Policy = nil, &approval.Policy{RevealUsers: []string{"ana"}}
		}, "people.reveal"},
		"a default that is no answer": {
			func(a *pregel.Ask, _ *engine.Options) {
				a.Schema, a.TTL, a.Expiry, a.Default = `{"properties":{"card":{"maxLength":1}}}`, time.Minute, checkpoint.ExpiryResumeDefault, newSecretAnswer(defaultSecret)
			}, "does not fit its own schema",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ask, opts := newSecretAsk(), engine.Options{KnowsCallers: true, KeepsSecrets: true}
			c.edit(&ask, &opts)
			f := &fixture{t: t, store: memory.New(memory.Options{}), graphs: graphCatalog{}, opts: opts, nodes: &nodeExecutor{funcs: map[string]nodeFunc{
				"pay": func(context.Context, *nodeCall) pregel.Result { return pregel.Result{Asks: []pregel.Ask{ask}} },
			}}}
			f.compileGraph(chainSpec("g", []graph.ChannelSpec{{Name: "paid"}}, "pay"))
			startWithSchemas(f)
			t.Cleanup(func() { closeEngine(t, f.engine) })
			run := f.runToStop("t", "g", "{}")
			require.Equal(t, checkpoint.RunFailed, run.State)
			require.Equal(t, runtime.FailedInvalidUpdate, run.Failure.Reason)
			require.Contains(t, run.Failure.Message, c.want)
			require.NotContains(t, fmt.Sprint(run.Failure), defaultSecret)
		})
	}
}

func TestASecretDefaultIsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := newSecretAsk()
		ask.TTL, ask.Expiry, ask.Default = time.Minute, checkpoint.ExpiryResumeDefault, newSecretAnswer(defaultSecret)
		c := newSecretCase(t, ask)
		require.NotContains(t, string(c.question().Default), defaultSecret)
		sleepVirtual(3 * time.Minute)
		require.Equal(t, []string{string(newSecretAnswer(defaultSecret))}, c.given)
		c.requireHidden()
	})
}

func TestARetractedSecretIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask, undo := newSecretAsk(), time.Minute
		ask.Undo = &undo
		c := newSecretCase(t, ask)
		_, err := c.say(c.engine, "ana: "+string(newSecretAnswer(answerSecret)))
		require.NoError(t, err)
		require.False(t, c.question().Hidden.Response.IsEmpty())
		seen, err := c.reveal("ana")
		require.NoError(t, err)
		require.Equal(t, newSecretAnswer(answerSecret), seen.Response, "it is the own answer")
		_, err = c.engine.RetractResponse(t.Context(), runtime.RetractRequest{Question: c.name(), By: actor("ana")})
		require.NoError(t, err)
		require.True(t, c.question().Hidden.Response.IsEmpty())
		_, err = c.say(c.engine, "ana: "+string(newSecretAnswer("second-1")))
		require.NoError(t, err)
		sleepVirtual(2 * time.Minute)
		require.Equal(t, []string{string(newSecretAnswer("second-1"))}, c.given)
		c.requireHidden()
	})
}

// The same answer again is accepted, and one with another secret is not the same.
func TestRepeatedSecretAnswers(t *testing.T) {
	c := newSecretCase(t, newSecretAsk())
	id := c.question().ID
	answer := func(value payload.JSON) error {
		_, err := c.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", Responses: []runtime.Response{{Interrupt: id, Value: value}}})
		return err
	}
	require.NoError(t, answer(newSecretAnswer(answerSecret)))
	_, err := c.engine.WaitRun(t.Context(), "t", c.question().Run)
	require.NoError(t, err)
	require.NoError(t, answer(newSecretAnswer(answerSecret)))
	err = answer(newSecretAnswer("another-1"))
	require.Equal(t, runtime.ReasonInterruptAlreadyResolved, errorReason(err))
	require.NotContains(t, err.Error(), answerSecret)
}

// What is secret can't be found out by trying answers.
func TestSecretsCanNotBeTried(t *testing.T) {
	plain := newSecretCase(t, newSecretAsk())
	id := plain.question().ID
	s, err := plain.say(plain.engine, "ana: "+string(newSecretAnswer(answerSecret)))
	require.NoError(t, err)
	plain.waitRun(s)
	answerAs := func(c *secretCase, who string, value payload.JSON) error {
		_, err := c.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", By: actor(who), Responses: []runtime.Response{{Interrupt: id, Value: value}}})
		return err
	}
	require.NoError(t, answerAs(plain, "ana", newSecretAnswer(answerSecret)))
	for _, guess := range []payload.JSON{newSecretAnswer(answerSecret), newSecretAnswer("another-1")} {
		require.Equal(t, runtime.ReasonInterruptAlreadyResolved, errorReason(answerAs(plain, "ben", guess)), guess)
	}

	ask := newSecretAsk()
	ask.Policy = &approval.Policy{Approvals: 2}
	c := newSecretCase(t, ask)
	c.mustSay("ana: " + string(newSecretAnswer(answerSecret)))
	for _, guess := range []payload.JSON{newSecretAnswer(answerSecret), newSecretAnswer("another-1")} {
		checked, err := c.engine.CheckResponses(t.Context(), runtime.ResumeRequest{Thread: "t", By: actor("ben"), Responses: []runtime.Response{{Interrupt: c.question().ID, Value: guess}}})
		require.NoError(t, err)
		require.Equal(t, runtime.CheckedResponse{Interrupt: c.question().ID, MissingVotes: 1}, checked[0], "it does not tell whether the votes are equal")
	}
	id = c.question().ID
	c.mustSay("ben: " + string(newSecretAnswer("another-1")))
	c.mustSay("dora: " + string(newSecretAnswer(answerSecret)))
	for _, guess := range []payload.JSON{newSecretAnswer(answerSecret), newSecretAnswer("another-1")} {
		require.Equal(t, runtime.ReasonInterruptAlreadyResolved, errorReason(answerAs(c, "ben", guess)), guess)
	}
	require.NoError(t, answerAs(c, "ana", newSecretAnswer(answerSecret)))
}

// A call that is refused leaves no entry. So whether it is does not depend on the votes of others.
func TestRefusedVotesTellNothingOfSecrets(t *testing.T) {
	guesses := []payload.JSON{newSecretAnswer(answerSecret), newSecretAnswer("another-1.2")}
	newCase := func(t *testing.T) (c *secretCase, try func(guess payload.JSON, edit func(*runtime.ResumeRequest)) error) {
		t.Helper()
		ask := newSecretAsk()
		ask.Policy = &approval.Policy{Approvals: 2}
		c = newSecretCase(t, ask)
		c.mustSay("ana: " + string(guesses[0]))
		return c, func(guess payload.JSON, edit func(*runtime.ResumeRequest)) error {
			req := runtime.ResumeRequest{Thread: "t", By: actor("ben"), Responses: []runtime.Response{{Interrupt: c.question().ID, Value: guess}}}
			if edit == nil {
				_, err := c.engine.CheckResponses(t.Context(), req)
				return err
			}
			edit(&req)
			_, err := c.engine.Resume(t.Context(), req)
			return err
		}
	}
	requireSame := func(t *testing.T, c *secretCase, tries ...error) {
		t.Helper()
		require.Error(t, tries[0])
		require.EqualError(t, tries[1], tries[0].Error())
		require.Equal(t, errorReason(tries[0]), errorReason(tries[1]))
		require.Equal(t, checkpoint.InterruptOpen, c.question().State)
	}
	t.Run("with a command", func(t *testing.T) {
		for _, edit := range []func(r *runtime.ResumeRequest){
			func(r *runtime.ResumeRequest) { r.Update = `{"nothing":1}` },
			func(r *runtime.ResumeRequest) { r.Goto = []checkpoint.Send{{Node: "nowhere"}} },
		} {
			c, try := newCase(t)
			requireSame(t, c, try(guesses[0], edit), try(guesses[1], edit))
		}
	})
	t.Run("with settings", func(t *testing.T) {
		c, try := newCase(t)
		edit := func(r *runtime.ResumeRequest) {
			r.Settings = &runtime.RunSettings{InterruptBefore: []string{"nowhere"}}
		}
		requireSame(t, c, try(guesses[0], edit), try(guesses[1], edit))
	})
	t.Run("as large as votes may be", func(t *testing.T) {
		c, try := newCase(t)
		pad := payload.JSON(strings.Repeat(" ", approval.MaxVoteBytes*2/3))
		requireSame(t, c, try(guesses[0]+pad, nil), try(guesses[1]+pad, nil))
	})
	t.Run("after as many votes as there may be", func(t *testing.T) {
		c, try := newCase(t)
		for n := range 20 {
			c.mustSay("ben: " + string(newSecretAnswer(fmt.Sprint("ben-", n))))
		}
		requireSame(t, c, try(guesses[0], nil), try(guesses[1], nil))
		vote := func(*runtime.ResumeRequest) {}
		requireSame(t, c, try(guesses[0], vote), try(guesses[1], vote))
	})
}

func TestACopyHasTheSecrets(t *testing.T) {
	c := newSecretCase(t, newSecretAsk())
	_, err := c.engine.CopyThread(t.Context(), runtime.CopyRequest{Source: "t", Thread: "copy"})
	require.NoError(t, err)
	list, err := c.engine.Interrupts(t.Context(), nil, checkpoint.InterruptQuery{Thread: "copy"})
	require.NoError(t, err)
	seen, err := c.engine.RevealInterrupt(t.Context(), runtime.RevealRequest{Question: runtime.Question{Thread: "copy", Interrupt: list[0].ID}, By: actor("ana")})
	require.NoError(t, err)
	require.Contains(t, string(seen.Value), askedSecret)
	run := c.answerSingle("copy", string(newSecretAnswer(answerSecret)))
	require.Equal(t, checkpoint.RunSucceeded, run.State, "%+v", run.Failure)
	require.Equal(t, []string{string(newSecretAnswer(answerSecret))}, c.given)
	require.Equal(t, []string{"asked"}, c.trail(), "the question that was copied is as before")
}

// A run that works with the answer would store the question without the entry.
func TestRevealWaitsForTheRun(t *testing.T) {
	c := newSecretCase(t, newSecretAsk())
	code, begun, goOn := c.nodes.funcs["pay"], make(chan struct{}), make(chan struct{})
	c.nodes.funcs["pay"] = func(ctx context.Context, n *nodeCall) pregel.Result {
		close(begun)
		<-goOn
		return code(ctx, n)
	}
	s, err := c.say(c.engine, "ana: "+string(newSecretAnswer(answerSecret)))
	require.NoError(t, err)
	<-begun
	_, err = c.reveal("ana")
	require.Equal(t, runtime.ReasonThreadBusy, errorReason(err))
	close(goOn)
	c.waitRun(s)
	_, err = c.reveal("ana")
	require.NoError(t, err)
	require.Equal(t, "revealed ana to check", c.trail()[3])
}
