package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// result turns what a function returned into a result.
func (c *call) result(value any) pregel.Result {
	r, err := c.convert(value)
	if err != nil {
		return failed(invalid(err))
	}
	return r
}

func (c *call) convert(value any) (pregel.Result, error) {
	switch v := value.(type) {
	case nil:
		return pregel.Result{}, nil
	case api.Command:
		return c.commands([]api.Command{v})
	case *api.Command:
		if v == nil {
			return pregel.Result{}, nil
		}
		return c.commands([]api.Command{*v})
	case []api.Command:
		return c.commands(v)
	case api.Target:
		targets, err := c.targets([]api.Target{v})
		return pregel.Result{Goto: targets}, err
	case []api.Target:
		return pregel.Result{}, errors.New("a list of targets is no update; return graph.Command{Goto: …}")
	}
	update, err := c.update(value, false)
	return pregel.Result{Update: update}, err
}

// commands puts several commands into one result, in their order.
func (c *call) commands(list []api.Command) (pregel.Result, error) {
	var r pregel.Result
	var updates []payload.JSON
	for i := range list {
		if i > 0 && list[i].Parent != r.Parent {
			return r, errors.New("some of the commands are for the parent graph, some are not; return one kind")
		}
		r.Parent = list[i].Parent
		update, err := c.update(list[i].Update, r.Parent)
		if err != nil {
			return r, err
		}
		if update != "" && update != payload.Null {
			updates = append(updates, update)
		}
		targets, err := c.targets(list[i].Goto)
		if err != nil {
			return r, err
		}
		r.Goto = append(r.Goto, targets...)
	}
	err := c.combine(&r, updates)
	return r, err
}

// combine sets what several updates write. Several values for one channel all
// go to its reducer, in order.
func (c *call) combine(r *pregel.Result, updates []payload.JSON) error {
	switch {
	case len(updates) == 0:
		return nil
	case len(updates) == 1:
		r.Update = updates[0]
		return nil
	case isRoot(c.task.Graph):
		for _, u := range updates {
			r.Writes = append(r.Writes, checkpoint.Write{Channel: graph.Root, Value: u})
		}
		return nil
	}
	var all []payload.Field
	for _, u := range updates {
		fields, err := payload.Fields(u)
		if err != nil {
			return err
		}
		all = append(all, fields...)
	}
	r.Update = payload.Object(all)
	return nil
}

// update encodes an update. Only the whole state of a graph may be something
// else than an object; of a parent graph that is not known here.
func (c *call) update(value any, parent bool) (payload.JSON, error) {
	if value == nil {
		return "", nil
	}
	repeats := payload.RepeatsBelow // a channel has one value in an update
	if isRoot(c.task.Graph) {
		repeats = payload.AnyRepeats
	}
	text, err := c.encode(value, repeats)
	if err != nil {
		return "", err
	}
	kind := payload.KindOf(text)
	if kind != payload.ObjectKind && kind != payload.NullKind && !parent && !isRoot(c.task.Graph) {
		return "", fmt.Errorf("a node returns an object with a key per channel, not %s %s (%T)", kind, brief(text), value)
	}
	return text, nil
}

func (c *call) targets(list []api.Target) ([]checkpoint.Send, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make([]checkpoint.Send, len(list))
	for i, t := range list {
		if t.Node == "" {
			return nil, errors.New("a target names no node")
		}
		out[i].Node = t.Node
		if t.Input == nil {
			continue
		}
		input, err := c.encode(t.Input, payload.AnyRepeats)
		if err != nil {
			return nil, fmt.Errorf("the input for %q: %w", t.Node, err)
		}
		out[i].Input = input
	}
	return out, nil
}

// route turns what the function of a conditional edge returned into targets.
func (c *call) route(value any) pregel.Result {
	targets, err := c.decision(value)
	if err != nil {
		return failed(invalid(fmt.Errorf("the decision of router %q: %w", c.task.Router, err)))
	}
	return pregel.Result{Goto: targets}
}

func (c *call) decision(value any) ([]checkpoint.Send, error) {
	switch v := value.(type) {
	case api.Target:
		return c.targets([]api.Target{v})
	case []api.Target:
		return c.targets(v)
	case nil:
		return nil, errors.New("it is nothing; return a node, a list of them, or graph.End")
	}
	text, err := c.encode(value, payload.AnyRepeats)
	if err != nil {
		return nil, err
	}
	targets, err := pregel.Targets(text)
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		if t.Node == "" {
			return nil, errors.New("a target names no node")
		}
	}
	return targets, nil
}

// encode writes a value as JSON text. Text that is JSON already is only checked; it
// may have come from the store, with keys that are repeated.
func (c *call) encode(value any, repeats payload.Repeats) (payload.JSON, error) {
	var text payload.JSON
	if raw, ok := value.(json.RawMessage); ok && raw != nil {
		text = payload.JSON(raw)
	} else {
		e, _ := c.mux.encoders.Get().(*encoder)
		var err error
		text, err = e.encode(value)
		c.mux.encoders.Put(e)
		if err != nil {
			return "", fmt.Errorf("the result can't be written as JSON: %w", err)
		}
	}
	limits := c.mux.options.Limits
	limits.Repeats = repeats
	if err := payload.Validate(string(text), limits); err != nil {
		return "", err
	}
	return text, nil
}

// encoder writes JSON into a buffer that is used again.
type encoder struct {
	buf bytes.Buffer
	enc *json.Encoder
}

func newEncoder() *encoder {
	e := &encoder{}
	e.renew()
	return e
}

func (e *encoder) renew() {
	e.enc = json.NewEncoder(&e.buf)
	e.enc.SetEscapeHTML(false)
}

func (e *encoder) encode(value any) (payload.JSON, error) {
	const keep = 64 << 10
	e.buf.Reset()
	if err := e.enc.Encode(value); err != nil {
		e.renew()
		return "", err
	}
	text := payload.JSON(bytes.TrimSuffix(e.buf.Bytes(), []byte("\n")))
	if e.buf.Cap() > keep {
		e.buf = bytes.Buffer{}
	}
	return text, nil
}

// invalid is the failure of a node whose result can't be used.
func invalid(err error) *pregel.Failure {
	f := permanent(runtime.FailedInvalidUpdate, "InvalidResult", clip(err.Error()))
	switch limit, _ := errors.AsType[*payload.LimitError](err); {
	case limit == nil:
	case limit.Limit == "bytes":
		f.Reason = runtime.FailedOutputTooLarge
	default:
		f.Reason = runtime.FailedLimit
		f.Details = (&graph.LimitError{Limit: "max-depth", Most: int64(limit.Max)}).Details()
	}
	return f
}

func brief(v payload.JSON) string {
	const most = 60
	if len(v) <= most {
		return string(v)
	}
	return clip(string(v[:most])) + "…"
}
