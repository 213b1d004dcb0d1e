package function

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// toResult converts the value that a function returned to a result.
func (c *call) toResult(value any) pregel.Result {
	r, err := c.convertValue(value)
	if err != nil {
		return FailedResult(InvalidResult(err))
	}
	return r
}

func (c *call) convertValue(value any) (pregel.Result, error) {
	switch v := value.(type) {
	case nil:
		return pregel.Result{}, nil
	case api.Command:
		return c.combineCommands([]api.Command{v})
	case *api.Command:
		if v == nil {
			return pregel.Result{}, nil
		}
		return c.combineCommands([]api.Command{*v})
	case []api.Command:
		return c.combineCommands(v)
	case api.Target:
		targets, err := c.encodeTargets([]api.Target{v})
		return pregel.Result{Goto: targets}, err
	case []api.Target:
		return pregel.Result{}, errors.New("a list of targets is no update; return graph.Command{Goto: …}")
	}
	update, err := c.encodeUpdate(value, false)
	return pregel.Result{Update: update}, err
}

// combineCommands combines several commands into one result, in their order.
func (c *call) combineCommands(list []api.Command) (pregel.Result, error) {
	var r pregel.Result
	var updates []payload.JSON
	for i := range list {
		if i > 0 && list[i].Parent != r.ToParent {
			return r, errors.New("some of the commands are for the parent graph, some are not; return one kind")
		}
		r.ToParent = list[i].Parent
		update, err := c.encodeUpdate(list[i].Update, r.ToParent)
		if err != nil {
			return r, err
		}
		if update != "" && update != payload.Null {
			updates = append(updates, update)
		}
		targets, err := c.encodeTargets(list[i].Goto)
		if err != nil {
			return r, err
		}
		r.Goto = append(r.Goto, targets...)
	}
	err := c.setUpdates(&r, updates)
	return r, err
}

// setUpdates sets the writes of several updates. Several values for one channel all
// go to its reducer, in order.
func (c *call) setUpdates(r *pregel.Result, updates []payload.JSON) error {
	switch {
	case len(updates) == 0:
		return nil
	case len(updates) == 1:
		r.Update = updates[0]
		return nil
	case c.isSingleValue(updates):
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

// isSingleValue reports whether updates are values of a state that is one value. Where the form of
// the state is not known, they tell it.
func (c *call) isSingleValue(updates []payload.JSON) bool {
	if c.task.State != UnknownForm {
		return c.task.State == SingleValue
	}
	return slices.ContainsFunc(updates, func(u payload.JSON) bool { return payload.KindOf(u) != payload.ObjectKind })
}

// encodeUpdate encodes an update. It must be an object, unless the graph has one
// channel for the whole state; for a parent graph that is not known here.
func (c *call) encodeUpdate(value any, parent bool) (payload.JSON, error) {
	if value == nil {
		return "", nil
	}
	repeats := payload.AllowRepeatedKeysBelowRoot // a channel has one value in an update
	if c.task.State != Channels {
		repeats = payload.AllowRepeatedKeys
	}
	text, err := c.encodeValue(value, repeats)
	if err != nil {
		return "", err
	}
	kind := payload.KindOf(text)
	if kind != payload.ObjectKind && kind != payload.NullKind && !parent && c.task.State == Channels {
		return "", fmt.Errorf("a node returns an object with a key per channel, or a graph.Command{Goto: …}, not %s %s (%T)", kind, ShortenValue(text), value)
	}
	return text, nil
}

func (c *call) encodeTargets(list []api.Target) ([]checkpoint.Send, error) {
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
		input, err := c.encodeValue(t.Input, payload.AllowRepeatedKeys)
		if err != nil {
			return nil, fmt.Errorf("the input for %q: %w", t.Node, err)
		}
		out[i].Input = input
	}
	return out, nil
}

// toRouterResult converts the value that the function of a conditional edge
// returned to targets.
func (c *call) toRouterResult(value any) pregel.Result {
	targets, err := c.encodeDecision(value)
	if err != nil {
		return FailedResult(InvalidResult(fmt.Errorf("the decision of router %q: %w", c.task.Router, err)))
	}
	return pregel.Result{Goto: targets}
}

func (c *call) encodeDecision(value any) ([]checkpoint.Send, error) {
	switch v := value.(type) {
	case api.Target:
		return c.encodeTargets([]api.Target{v})
	case []api.Target:
		return c.encodeTargets(v)
	case nil:
		return nil, errors.New("it is nothing; return a node, a list of them, or graph.End")
	}
	if _, isText := value.(json.RawMessage); !isText {
		if v := reflect.ValueOf(value); v.Kind() == reflect.Slice && v.IsNil() {
			return nil, nil // an empty list
		}
	}
	text, err := c.encodeValue(value, payload.AllowRepeatedKeys)
	if err != nil {
		return nil, err
	}
	targets, err := pregel.ParseTargets(text)
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

// encodeValue returns a value as JSON text. Text that is JSON already is only
// checked; it may come from the store, with repeated keys.
func (c *call) encodeValue(value any, repeats payload.RepeatedKeys) (payload.JSON, error) {
	var text payload.JSON
	if raw, ok := value.(json.RawMessage); ok && raw != nil {
		text = payload.JSON(raw)
	} else {
		e, _ := c.runner.encoders.Get().(*encoder)
		var err error
		text, err = e.encodeJSON(value)
		c.runner.encoders.Put(e)
		if err != nil {
			return "", fmt.Errorf("the result can't be written as JSON: %w", err)
		}
	}
	limits := c.runner.options.Limits
	limits.RepeatedKeys = repeats
	if err := payload.Validate(string(text), limits); err != nil {
		return "", err
	}
	return text, nil
}

// encoder writes JSON into a buffer that is reused.
type encoder struct {
	buf         bytes.Buffer
	jsonEncoder *json.Encoder
}

func newEncoder() *encoder {
	e := &encoder{}
	e.resetEncoder()
	return e
}

func (e *encoder) resetEncoder() {
	e.jsonEncoder = json.NewEncoder(&e.buf)
	e.jsonEncoder.SetEscapeHTML(false)
}

func (e *encoder) encodeJSON(value any) (payload.JSON, error) {
	const keep = 64 << 10
	e.buf.Reset()
	if err := e.jsonEncoder.Encode(value); err != nil {
		e.resetEncoder()
		return "", err
	}
	text := payload.JSON(bytes.TrimSuffix(e.buf.Bytes(), []byte("\n")))
	if e.buf.Cap() > keep {
		e.buf = bytes.Buffer{}
	}
	return text, nil
}

// InvalidResult returns the failure of a node with an unusable result.
func InvalidResult(err error) *pregel.Failure {
	f := PermanentFailure(runtime.FailedInvalidUpdate, "InvalidResult", ClipText(err.Error()))
	switch limit, _ := errors.AsType[*payload.LimitError](err); {
	case limit == nil:
	case limit.Limit == "bytes":
		f.Reason = runtime.FailedOutputTooLarge
	default:
		f.Reason = runtime.FailedLimit
		f.Details = (&graph.LimitError{Limit: "max-depth", Max: int64(limit.Max)}).Details()
	}
	return f
}

// ShortenValue returns a value as messages show it.
func ShortenValue(v payload.JSON) string {
	const most = 60
	if len(v) <= most {
		return string(v)
	}
	return ClipText(string(v[:most])) + "…"
}
